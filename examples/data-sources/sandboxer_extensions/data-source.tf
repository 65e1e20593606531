data "sandboxer_extensions" "all" {}

output "can_snapshot" {
  value = [for x in data.sandboxer_extensions.all.extensions : x.id if contains(x.powers, "snapshot")]
}
