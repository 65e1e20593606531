# Usage of each harness in January, by charged component.
data "sandboxer_usage" "january" {
  from = "2026-01"
  to   = "2026-02"
  by   = ["harness", "component"]
}

output "january" {
  value = [for r in data.sandboxer_usage.january.rows : "${coalesce(r.harness, "nobody")}: ${r.component}, ${r.billed} ${r.currency}" if r.status == "settled"]
}

output "january_in_all" {
  value = { for t in data.sandboxer_usage.january.totals : t.currency => t.billed if t.status == "settled" && t.currency != null }
}
