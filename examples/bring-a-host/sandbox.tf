resource "sandboxer_sandbox" "stack" {
  profile = "profile.compose-e2e"
  name    = "first"
  hosts   = [sandboxer_host.build.ref]
  inputs  = { repo = "${path.module}/stack" }
  env     = { IMAGE = "busybox:1.36" } # what the Compose file may interpolate
  ttl     = "30m"                      # counted from the creation; the host ends it then

  # Terraform does not look into the folder: this makes a new stack when a file of it changes.
  triggers = {
    for f in fileset("${path.module}/stack", "**") : f => filesha256("${path.module}/stack/${f}")
  }
}
