data "sandboxer_account" "ours" {}

output "available" {
  value = { for w in data.sandboxer_account.ours.wallets : w.currency => w.available }
}

output "budgets_nearly_spent" {
  value = [for b in data.sandboxer_account.ours.budgets : b.name if tonumber(b.left) < tonumber(b.limit) / 10]
}
