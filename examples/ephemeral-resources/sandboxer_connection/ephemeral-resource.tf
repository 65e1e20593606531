variable "sandbox_id" {
  type = string
}

# The ports are reachable as long as this run needs them.
ephemeral "sandboxer_connection" "stack" {
  sandbox_id = var.sandbox_id
  ports = {
    db = { port = 5432, service = "db" }
  }
}

# A provider that connects to a program inside the sandbox.
provider "postgresql" {
  host = split(":", ephemeral.sandboxer_connection.stack.addresses["db"])[0]
  port = split(":", ephemeral.sandboxer_connection.stack.addresses["db"])[1]
}
