package engine

// Points between the steps of create and destroy where tests end the process.
const (
	pointPrepared    = "engine.create.prepared"    // nothing recorded
	pointBegun       = "engine.create.begun"       // intent recorded, nothing asked
	pointPlaced      = "engine.create.placed"      // place recorded, nothing asked
	pointProvisioned = "engine.create.provisioned" // made, handle not stored
	pointHandle      = "engine.create.handle"      // handle stored
	pointReady       = "engine.create.ready"       // ready there, not here
	pointConfirmed   = "engine.create.confirmed"   // done here, not told
	pointDestroying  = "engine.destroy.begun"      // intent recorded, nothing ended
	pointTorn        = "engine.destroy.torn"       // ended there, not here
	pointDestroyed   = "engine.destroy.confirmed"  // done here, not told

	pointSnapshotBegun = "engine.snapshot.begun"     // intent recorded, nothing asked
	pointSnapshotMade  = "engine.snapshot.made"      // made there, not recorded
	pointSnapshotKept  = "engine.snapshot.confirmed" // done here, not told

	pointExtending = "engine.extend.begun" // intent recorded, nothing asked
	pointExtended  = "engine.extend.moved" // moved there, not here
)
