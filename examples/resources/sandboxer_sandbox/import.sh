# By ID, as `sandboxer sandbox list` shows it.
terraform import sandboxer_sandbox.app sbx-aaaaaaaaaaaaaaaaaaaa

# By account and name.
terraform import sandboxer_sandbox.app default/default/app
