resource "sandboxer_sandbox" "app" {
  profile = "profile.quickstart"
  ttl     = "15m"
}

# Runs once, and again when the version changes.
resource "sandboxer_exec" "build" {
  sandbox_id = sandboxer_sandbox.app.id
  command    = ["sh", "-c", "echo \"built $VERSION\" >result"]
  env        = { VERSION = "1.0" }
  timeout    = "10m"
}

# Exit code 3 means that there is nothing to report. The state keeps the output.
resource "sandboxer_exec" "report" {
  sandbox_id          = sandboxer_sandbox.app.id
  shell               = "test -s result || exit 3; cat result"
  expected_exit_codes = [0, 3]
  capture             = true
  triggers            = { build = sandboxer_exec.build.id }
}

output "report" {
  value = nonsensitive(sandboxer_exec.report.stdout)
}
