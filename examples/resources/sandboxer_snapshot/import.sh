# By ID.
terraform import sandboxer_snapshot.seeded snp-aaaaaaaaaaaaaaaaaaaa
