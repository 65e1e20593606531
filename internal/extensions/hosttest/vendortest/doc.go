// Package vendortest is what the fakes of vendors with an interface over HTTP have in common, and what tests need around
// them: a wire that records every request, judges it and its answer by the vendor's own description and lets faults strike;
// killers, gates and pagers to stand before it; and the vendor's own SDK as a witness.
package vendortest
