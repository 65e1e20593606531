package compose

import (
	"context"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

const (
	maxLog    = 8 << 10 // bytes that are kept of a build's log, its end
	maxLogged = 2000    // characters of it in a message
	maxLine   = 300     // characters of what is told while it goes on
)

// BuildLog is what one build at a vendor prints.
type BuildLog struct {
	Vendor, What string // who builds what, for people
	end          string
}

// Add tells of what was printed, whole lines or parts of them, and keeps its end.
func (l *BuildLog) Add(ctx context.Context, text string) {
	l.end += text
	l.end = l.end[max(0, len(l.end)-maxLog):]
	if last := extensions.LastLines(text, maxLine); last != "" {
		extensions.Progress(ctx, "Preparing "+l.What, last)
	}
}

// Failed is the error of a build that failed. of is nil for an image as it is, which is KindUnsupported: another place may get
// it.
func (l *BuildLog) Failed(why string, of *Build) error {
	kind, remedy := extensions.KindUnsupported, "check the image: it must exist, be for linux/amd64, and be public or have a login"
	if of != nil {
		kind, remedy = extensions.KindInvalid, "correct the Dockerfile; a private image needs a login of its registry"
	}
	text := extensions.LastLines(l.end, maxLogged)
	if text != "" {
		text = "\n" + text
	}
	return extensions.Errorf(kind, "%s could not build %s: %s%s", l.Vendor, l.What, extensions.Clean(why, maxLine), text).At("image").
		WithRemedy("%s", remedy)
}

// CutOff is the error of a step of a build at a vendor: whether or not it arrived, no sandbox was made, and the next try finds
// what is there.
func CutOff(err error) error {
	if extensions.MayBeDone(err) || extensions.IsKind(err, extensions.KindNotFound) {
		return extensions.Errorf(extensions.KindUnavailable, "the image was not ready in time: %w", err).
			WithRemedy("try again: the build goes on")
	}
	return err
}
