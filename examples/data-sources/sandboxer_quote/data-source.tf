resource "sandboxer_host" "here" {
  name  = "priced"
  local = true
  cost  = { per_hour = "0.40 USD", cpu = 16, memory_mb = 65536 }
}

data "sandboxer_quote" "q" {
  profile = "profile.quickstart"
  ttl     = "2h"
  hosts   = [sandboxer_host.here.ref]
}

output "worst_case" {
  value = data.sandboxer_quote.q.maximum == null ? "unknown" : "${data.sandboxer_quote.q.maximum} ${data.sandboxer_quote.q.currency}"
}

output "refused" {
  value = { for c in data.sandboxer_quote.q.candidates : c.extension => c.refusals[*].reason if !c.eligible }
}
