# "profile.quickstart", and "1.0.0"
output "id" {
  value = provider::sandboxer::profile("profile.quickstart@1.0.0").id
}

output "version" {
  value = provider::sandboxer::profile("profile.quickstart@1.0.0").version
}
