package modal

import (
	"strconv"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/deadline"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/labels"
)

// Labels of this adapter.
const (
	labelWorkDir = "sandboxer.workdir" // the workspace inside; absent where there is none
	labelEnds    = "sandboxer.ends"    // when the vendor ends it, in seconds since 1970
)

// tags is what a new sandbox carries, in words that a tag takes.
func tags(spec extensions.Spec, ends time.Time) (map[string]string, error) {
	all := labels.Of(spec)
	all[labelEnds] = strconv.FormatInt(deadline.Unix(ends), 10)
	if d := workDirOf(spec); d != "" {
		all[labelWorkDir] = d
	}
	return labels.Pack(all, labels.Room{})
}

// ours reads the tags of a sandbox, if it is one of this account.
func (b *backend) ours(ref string, list []*pb.SandboxTag) (seen, bool) {
	packed := map[string]string{}
	for _, t := range list {
		packed[t.GetTagName()] = t.GetTagValue()
	}
	all, err := labels.Unpack(packed, labels.Room{})
	if err != nil || all[extensions.LabelAccount] != b.account {
		return seen{}, false
	}
	id, err := extensions.ParseID(all[extensions.LabelID])
	s := seen{ref: ref, id: id, generation: labels.Generation(all), workDir: all[labelWorkDir]}
	if at, err := strconv.ParseInt(all[labelEnds], 10, 64); err == nil {
		s.ends = time.Unix(at, 0).UTC()
	}
	return s, err == nil
}

// tag is one label as the vendor is asked for it.
func tag(name, value string) *pb.SandboxTag {
	return pb.SandboxTag_builder{TagName: name, TagValue: labels.Value(value)}.Build()
}
