// Part of package main in the program that tests kill.
package main

import "github.com/sand-boxer/terraform-provider-sandboxer/internal/engine/failpoint/failpointtest"

func init() { failpointtest.Arm() }
