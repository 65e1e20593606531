# 86400
output "seconds" {
  value = provider::sandboxer::duration("1d")
}
