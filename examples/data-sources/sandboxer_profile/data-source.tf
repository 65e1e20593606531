data "sandboxer_profile" "quickstart" {
  profile = "profile.quickstart"
}

output "required_inputs" {
  value = [for i in data.sandboxer_profile.quickstart.inputs : i.name if i.required]
}
