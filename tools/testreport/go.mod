module github.com/sand-boxer/terraform-provider-sandboxer/tools/testreport

go 1.26.8
