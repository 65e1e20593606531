package profile

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Defaults if no profile sets a value.
const (
	defaultIsolation     = extensions.IsolationProcess
	defaultProbeInterval = time.Second
	defaultProbeTimeout  = time.Minute
	maxSettle            = 5 * time.Minute // half of the time that a stack has to start
)

// Inputs that by convention are the workspace's source.
const (
	InputRepo = "repo"
	InputRef  = "ref"
)

func (r *resolver) spec(set *Set, inputs map[string]any) extensions.Spec {
	p := r.p
	spec := extensions.Spec{
		Name: r.req.Name, Profile: p.ID, Version: p.Version,
		Isolation: isolationOf(p), Network: networkOf(p), Workspace: workspaceOf(p),
		Image: imageOf(p.Image), Compose: composeOf(p.Compose), Containers: containersOf(p.Containers),
		Resources: resourcesOf(p.Resources), Readiness: probeOf(p.Readiness), Settle: settleOf(p),
		FromSnapshot: r.checkpoint(), FromSandbox: r.req.FromSandbox,
	}
	if s := p.Setup; s != nil {
		spec.Instructions = value(s.Instructions, "")
	}
	if as := extensions.SecretDelivery(value(p.SecretsAs, "")); as != extensions.SecretsEnv { // the default has one representation
		spec.SecretsAs = as
	}
	if e := p.Entrypoint; e != nil && e.Mode != extensions.EntrypointIdle { // as above
		spec.Entrypoint = extensions.Entrypoint(*e)
	}
	if q := p.Requires; q != nil {
		spec.Requires = extensions.Requires{Runtime: slices.Clone(q.Runtime), Capabilities: slices.Clone(q.Capabilities),
			OS: slices.Clone(q.OS), Arch: archNames(q.Arch)}
	}
	if q := spec.Readiness; q != nil && q.Service != "" && spec.Compose == nil && spec.Containers == nil {
		r.fail(invalid("readiness.service of %s is %s, but the profile has no services", p.Ref(), quoted(q.Service)).
			WithRemedy("remove it, or give the profile compose or containers").At("profile"))
	}
	r.tools(set, &spec)
	r.identity()
	r.lifetime(&spec)
	r.source(&spec, inputs)
	r.environment(&spec)
	r.origin()
	return spec
}

func (r *resolver) identity() {
	if r.req.Name != "" {
		r.failAt("name", CheckName(r.req.Name))
	}
}

func (r *resolver) lifetime(spec *extensions.Spec) {
	p := r.p
	spec.Scope = value(p.ScopeDefault, ScopeSession)
	if r.req.Scope != "" {
		if !slices.Contains(scopes, r.req.Scope) {
			r.fail(invalid("%s is not a scope", quoted(r.req.Scope)).WithRemedy("use one of %s", strings.Join(scopes, ", ")).At("scope"))
		}
		spec.Scope = r.req.Scope
	}
	limits := value(p.TTL, TTL{})
	spec.MaxTTL = extensions.Duration(duration(limits.Max))
	spec.IdleReap = extensions.Duration(duration(limits.IdleReap))
	ttl := DefaultTTL
	if limits.Max != nil {
		ttl = min(ttl, duration(limits.Max))
	}
	if limits.Default != nil {
		ttl = duration(limits.Default)
	}
	if r.req.TTL != "" {
		var err error
		ttl, err = CheckTTL(r.req.TTL, duration(limits.Max))
		r.failAt("ttl", err)
	}
	spec.TTL = extensions.Duration(ttl)
}

// CheckTTL reads a lifetime. It returns KindInvalid unless MinTTL <= ttl <= most; most 0 means MaxTTL.
func CheckTTL(s string, most time.Duration) (time.Duration, error) {
	ttl, err := ParseDuration(s)
	if err != nil {
		return 0, invalid("ttl: %w", err)
	}
	limit, whose := most, "the profile's maximum"
	if most <= 0 {
		limit, whose = MaxTTL, "the longest possible ttl"
	}
	switch {
	case ttl == 0:
		return 0, invalid("ttl is zero: a sandbox needs time to live").WithRemedy("set a ttl from %s to %s", FormatDuration(MinTTL),
			FormatDuration(limit))
	case ttl < 0:
		return 0, invalid("ttl %s is negative", s).WithRemedy("set a ttl from %s to %s", FormatDuration(MinTTL), FormatDuration(limit))
	case ttl < MinTTL:
		return 0, invalid("ttl %s is below %s", s, FormatDuration(MinTTL)).WithRemedy("set a ttl from %s to %s", FormatDuration(MinTTL),
			FormatDuration(limit))
	case ttl > limit:
		return 0, invalid("ttl %s is above %s, %s", s, whose,
			FormatDuration(limit)).WithRemedy("set a ttl of at most %s, or use a profile that allows more", FormatDuration(limit))
	}
	return ttl, nil
}

// source stores the inputs, and takes the workspace's source from them.
func (r *resolver) source(spec *extensions.Spec, got map[string]any) {
	if len(got) > 0 {
		spec.Inputs = got
	}
	spec.Workspace.Repo = r.sourceInput(got, InputRepo, checkRepo)
	spec.Workspace.Ref = r.sourceInput(got, InputRef, checkGitRef)
	if spec.Workspace.Repo == "" {
		spec.Workspace.Ref = ""
	} else if spec.Workspace.Access == extensions.AccessNone {
		r.fail(invalid("inputs.repo is set, but %s gives the sandbox no workspace (workspace.access: none)", r.p.Ref()).
			WithRemedy("remove repo, or use a profile with access ro or rw").At("inputs.repo"))
	}
}

func (r *resolver) sourceInput(got map[string]any, name string, check func(string) error) string {
	in, declared := r.p.Inputs[name]
	if !declared || in.Type == nil || *in.Type != TypeString {
		return ""
	}
	s, _ := got[name].(string)
	if s != "" {
		if err := check(s); err != nil {
			r.fail(invalid("inputs.%s: %w", name, err).At("inputs." + name))
			return ""
		}
	}
	return s
}

// checkRepo refuses what git would read as an option, and credentials, since the address is kept in state,
// ledger and labels.
func checkRepo(s string) error {
	if err := line("the repository")(s); err != nil {
		return err
	}
	if strings.HasPrefix(s, "-") {
		return invalid("%s starts with -, which git reads as an option", quoted(s)).WithRemedy("write ./%s for a folder", extensions.Clean(s, 80))
	}
	if u, err := url.Parse(s); err == nil && u.User != nil {
		_, password := u.User.Password()
		if password || u.Scheme == "http" || u.Scheme == "https" {
			return invalid("the repository's URL contains credentials, which the state would store").
				WithRemedy("remove them from the URL and let git find them (credential helper, SSH agent)")
		}
	}
	return nil
}

func checkGitRef(s string) error {
	if err := line("the reference")(s); err != nil {
		return err
	}
	if strings.HasPrefix(s, "-") || len(s) > 1024 ||
		strings.ContainsFunc(s, func(c rune) bool { return isControl(c) || c == ' ' || strings.ContainsRune(`\?*[:`, c) }) {
		return invalid("%s is not a branch, tag or commit", quoted(s))
	}
	return nil
}

func (r *resolver) environment(spec *extensions.Spec) {
	env := newChecker(r.p)
	env.pairs(r.req.Env, checkEnv)
	for _, e := range env.errs {
		r.fail(invalid("env: %s", e.Msg).At("env"))
	}
	spec.Env = maps.Clone(r.req.Env)
	owner := map[string]string{}
	for k := range r.req.Env {
		owner[k] = "env"
	}
	taken := func(name, by, field string) bool {
		other, taken := owner[name]
		if taken {
			r.fail(invalid("%s is set twice: by %s and by %s", quoted(name), other, by).WithRemedy("remove one of the two").At(field))
		}
		owner[name] = by
		return taken
	}
	if spec.Compose != nil {
		for _, name := range slices.Sorted(maps.Keys(spec.Compose.Variables)) {
			taken(name, "compose.variables of "+r.p.Ref(), "env")
		}
	}
	claim := func(name, by string) {
		if !taken(name, by, "secrets_wo") {
			spec.SecretNames = append(spec.SecretNames, name)
		}
	}
	if len(r.req.SecretNames) > maxList {
		r.fail(invalid("%d secrets; at most %d are accepted", len(r.req.SecretNames), maxList).At("secrets_wo"))
		return
	}
	for _, name := range slices.Sorted(slices.Values(r.req.SecretNames)) {
		if err := CheckEnvName(name); err != nil {
			r.failAt("secrets_wo", invalid("secrets: %w", err))
			continue
		}
		claim(name, "secrets")
	}
	for _, ref := range secretRefs(r.p) {
		claim(ref.Name, "setup.secret_refs of "+r.p.Ref())
	}
	slices.Sort(spec.SecretNames)
}

// checkpoint returns what the sandbox starts from: what the request says, else the profile, whose snapshot may be
// given by name. A fork starts from its sandbox alone.
func (r *resolver) checkpoint() *extensions.SnapshotRef {
	if r.req.FromSnapshot != nil || r.req.FromSandbox != "" || r.p.FromSnapshot == nil {
		return r.req.FromSnapshot
	}
	return &extensions.SnapshotRef{ID: *r.p.FromSnapshot}
}

func (r *resolver) origin() {
	snapshot, sandbox := r.req.FromSnapshot, r.req.FromSandbox
	if snapshot != nil && sandbox != "" {
		r.fail(invalid("from_snapshot conflicts with from_sandbox").
			WithRemedy("choose one: restore a snapshot or fork a sandbox").At("from_snapshot"))
	}
	if snapshot != nil && !extensions.ValidSnapshotID(snapshot.ID) {
		r.fail(invalid("from_snapshot: %s is not a snapshot ID",
			quoted(snapshot.ID)).WithRemedy("use the ID of a sandboxer_snapshot").At("from_snapshot"))
	}
	if sandbox != "" {
		if _, err := extensions.ParseID(string(sandbox)); err != nil {
			r.fail(invalid("from_sandbox: %s is not a sandbox ID",
				quoted(string(sandbox))).WithRemedy("use the ID of a sandboxer_sandbox").At("from_sandbox"))
		}
	}
}
