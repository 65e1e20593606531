# A harness: an agent works on a folder in a container. Its instructions and its token are inside; it has no network.
# At the end, the files that it wrote come back into the folder. The token is read from $AGENT_TOKEN.

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandboxer = {
      source = "sand-boxer/sandboxer"
    }
  }
}

provider "sandboxer" {
  catalog = ["${path.module}/catalog"]
}

variable "task" {
  type        = string
  default     = "Count the words of notes.txt."
  description = "Instructions for the agent."
}

variable "image" {
  type        = string
  default     = "docker.io/library/debian:12-slim"
  description = "Image of the agent; it needs a shell and tar."
}

resource "sandboxer_sandbox" "agent" {
  profile     = "profile.agent"
  name_prefix = "agent-"
  inputs      = { repo = "${path.module}/work", image = var.image, task = var.task }
  max_cost    = "1.00 USD"
  consumer    = { actor = "agt", harness = "example" }
}

# The agent itself, here a script in the folder. If it fails, the apply fails.
resource "sandboxer_exec" "agent" {
  sandbox_id = sandboxer_sandbox.agent.id
  command    = ["sh", "agent.sh"]
  timeout    = "30m"
}

# Its answer. Its files come back with `terraform destroy`.
resource "sandboxer_exec" "answer" {
  sandbox_id = sandboxer_sandbox.agent.id
  command    = ["cat", "answer.txt"]
  capture    = true
  triggers   = { agent = sandboxer_exec.agent.id }
}

output "answer" {
  value = nonsensitive(sandboxer_exec.answer.stdout)
}
