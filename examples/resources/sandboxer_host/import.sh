# By name, from the ledger.
terraform import sandboxer_host.here here
