# By id.
terraform import sandboxer_snapshot.seeded snp-aaaaaaaaaaaaaaaaaaaa
