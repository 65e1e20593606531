package modal

import (
	"strconv"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
)

const (
	labelWorkDir = "sandboxer.workdir" // the workspace inside; absent where there is none
	labelEnds    = "sandboxer.ends"    // when the vendor ends it, in seconds since 1970
)

// tags is what a new sandbox carries, in words that a tag takes.
func tags(spec extensions.Spec, ends time.Time) (map[string]string, error) {
	all := labels.Of(spec)
	all[labelEnds] = strconv.FormatInt(deadline.Unix(ends), 10)
	if d := spec.WorkDir(fieldWorkDir, defaultWorkDir); d != "" {
		all[labelWorkDir] = d
	}
	return labels.Pack(all, labels.Room{})
}

// read reads the tags of a sandbox; one of another account has no id.
func (b *backend) read(ref string, list []*pb.SandboxTag) seen {
	packed := map[string]string{}
	for _, t := range list {
		packed[t.GetTagName()] = t.GetTagValue()
	}
	all, err := labels.Unpack(packed, labels.Room{})
	id, bad := extensions.ParseID(all[extensions.LabelID])
	if err != nil || bad != nil || all[extensions.LabelAccount] != b.account {
		return seen{ref: ref}
	}
	s := seen{ref: ref, id: id, generation: labels.Generation(all), workDir: all[labelWorkDir]}
	if at, err := strconv.ParseInt(all[labelEnds], 10, 64); err == nil {
		s.ends = time.Unix(at, 0).UTC()
	}
	return s
}
