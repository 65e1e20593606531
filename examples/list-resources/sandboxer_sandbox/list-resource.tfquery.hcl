# Terraform 1.14 or newer: terraform query -generate-config-out=found.tf
list "sandboxer_sandbox" "found" {
  provider = sandboxer
  config {
    harness = "wise-validator"
  }
}
