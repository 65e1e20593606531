package saasstub

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"

// Script and Rule are the vendor's: what a test makes it do wrong.
type (
	Script = vendor.Script
	Rule   = vendor.Rule
)

// WriteScript makes s the behaviour of the vendor in dir, in every process.
func WriteScript(dir string, s Script) error { return vendor.WriteScript(dir, s) }
