data "sandboxer_sandboxes" "mine" {
  harness = "wise-validator"
}

output "failed" {
  value = [for s in data.sandboxer_sandboxes.mine.sandboxes : s.id if s.state == "failed"]
}
