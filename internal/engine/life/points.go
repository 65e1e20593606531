package life

// Points between the steps of create and destroy at which tests end the process.
const (
	pointPrepared    = "engine.create.prepared"    // nothing recorded
	pointBegun       = "engine.create.begun"       // intent recorded, nothing asked
	pointPlaced      = "engine.create.placed"      // place recorded, nothing asked
	pointProvisioned = "engine.create.provisioned" // object made, handle not stored
	pointHandle      = "engine.create.handle"      // handle stored
	pointReady       = "engine.create.ready"       // ready there, not recorded
	pointConfirmed   = "engine.create.confirmed"   // recorded, not reported
	pointDestroying  = "engine.destroy.begun"      // intent recorded, nothing ended
	pointTorn        = "engine.destroy.torn"       // ended there, not recorded
	pointDestroyed   = "engine.destroy.confirmed"  // recorded, not reported

	pointSnapshotBegun = "engine.snapshot.begun"     // intent recorded, nothing asked
	pointSnapshotMade  = "engine.snapshot.made"      // image made, not recorded
	pointSnapshotKept  = "engine.snapshot.confirmed" // recorded, not reported

	pointSnapshotEnding = "engine.unkeep.begun"     // intent recorded, nothing asked
	pointSnapshotGone   = "engine.unkeep.gone"      // deleted there, not recorded
	pointSnapshotEnded  = "engine.unkeep.confirmed" // recorded, not reported

	pointModeBegun = "engine.mode.begun"     // intent recorded, nothing asked
	pointModeSet   = "engine.mode.set"       // changed there, not recorded
	pointModeKept  = "engine.mode.confirmed" // recorded, not reported

	pointExtending = "engine.extend.begun" // intent recorded, nothing asked
	pointExtended  = "engine.extend.moved" // moved there, not recorded
)
