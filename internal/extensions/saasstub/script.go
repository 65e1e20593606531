package saasstub

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/saasstub/vendor"

type (
	// Script is the vendor's: what a test makes it do wrong.
	Script = vendor.Script
	// Rule is one line of a Script.
	Rule = vendor.Rule
)

// WriteScript makes s the behaviour of the vendor in dir, in every process.
func WriteScript(dir string, s Script) error { return vendor.WriteScript(dir, s) }
