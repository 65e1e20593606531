resource "sandboxer_sandbox" "stack" {
  profile = "profile.compose-e2e"
  name    = "first"
  hosts   = [sandboxer_host.build.ref]
  inputs  = { repo = "${path.module}/stack" }
  env     = { IMAGE = "busybox:1.36" } # what the Compose file may interpolate
  ttl     = "30m"                      # from the creation; the host enforces it

  # Terraform does not read the folder: this replaces the stack when one of its files changes.
  triggers = {
    for f in fileset("${path.module}/stack", "**") : f => filesha256("${path.module}/stack/${f}")
  }
}
