package compose

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/compose-spec/compose-go/v2/interpolation"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/tree"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/sirupsen/logrus"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// Root is the absolute path that stands for the bundle's root in a policed model. It exists on no machine and
// is never opened.
const Root = "/.sandboxer-bundle"

// projectName stands in for the sandbox's id, which Load does not know.
const projectName = "sandboxer"

// loading is one Load. The library gets text and maps, never a path to open: include, extends, env and label
// files are read here, from the bundle.
type loading struct {
	ctx     context.Context // this call's; the library's callbacks cannot pass it
	in      Input
	bundle  *Bundle
	found   *findings
	secrets map[string]bool
	casts   map[tree.Path]interpolation.Cast
	left    int // bytes that interpolation may still produce
	files   int // read so far
	loops   int // services extended so far
	nodes   int // YAML nodes so far, copies counted
}

// Load reads the stack from the bundle and polices it. A refused stack is a KindInvalid error that wraps a
// *PolicyError with everything it is refused for; a stack that Compose itself cannot read is KindInvalid too.
//
// In the model, the bundle's paths are absolute below Root and free of symbolic links, env and label files
// are resolved, and services that the profiles leave out have been policed like the others.
func Load(ctx context.Context, in Input) (p *Project, err error) {
	quiet()
	if !oneWord(in.Publish, "", PublishAsWritten, PublishLoopback, PublishNone) {
		return nil, extensions.Errorf(extensions.KindInvalid, "publish %q is unknown", extensions.Clean(in.Publish, 40)).
			At("publish").WithRemedy("Use %q, %q or %q.", PublishAsWritten, PublishLoopback, PublishNone)
	}
	bundle, err := ReadBundle(ctx, in.Source)
	if err != nil {
		return nil, err
	}
	l := &loading{ctx: ctx, in: in, bundle: bundle, found: newFindings(in.Allow), left: maxExpanded,
		secrets: map[string]bool{}, casts: loader.ToOptions(&types.ConfigDetails{}, nil).Interpolate.TypeCastMapping}
	for _, name := range in.SecretNames {
		l.secrets[name] = true
	}
	// The library asserts types on text that nobody has validated yet. All that can be said of such text is
	// that it is no stack.
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, l.fail(fmt.Errorf("not accepted by Compose: %v", r))
		}
	}()
	project, contradiction, err := l.project()
	if err == nil {
		l.police(project)
		err = l.found.err()
	}
	if err == nil {
		err = contradiction()
	}
	if err != nil {
		return nil, l.fail(err)
	}
	l.settle(project)
	return &Project{Compose: project, Bundle: bundle, Root: Root, Publish: l.publish()}, nil
}

// publish returns Input.Publish or its default.
func (l *loading) publish() string {
	switch {
	case l.in.Publish != "":
		return l.in.Publish
	case l.in.Deny:
		return PublishNone
	}
	return PublishLoopback
}

// quiet silences the library: it warns on this process's standard error, in words that come from the stack.
var quiet = sync.OnceFunc(func() { logrus.SetOutput(io.Discard) })

// fail turns what stopped a load into a refusal. Earlier refusals come first: they may well be the cause.
func (l *loading) fail(err error) error {
	var known *extensions.Error
	switch {
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	if refused := l.found.err(); refused != nil {
		return refused
	}
	return extensions.Errorf(extensions.KindInvalid, "the compose stack cannot be read: %s", extensions.Clean(err.Error(), 600)).
		At("compose").WithRemedy("Try `docker compose config` on the same files.")
}

// stop ends a load with a violation.
func (l *loading) stop(rule, where string, err error) error {
	l.found.refuse(rule, where, err.Error())
	return l.found.err()
}

// project loads the model without policing it. contradiction runs the library's own check. It runs after the
// policy, so that a stack first gets everything it is refused for.
func (l *loading) project() (p *types.Project, contradiction func() error, err error) {
	files, err := l.mainFiles()
	if err != nil {
		return nil, nil, err
	}
	dir := "."
	if len(l.in.Files) > 0 {
		// A link to a file does not move the project; a link to its folder may.
		dir = path.Dir(path.Clean(l.in.Files[0]))
	}
	env, err := l.mainEnv(dir)
	if err != nil {
		return nil, nil, err
	}
	dict, err := l.unit(files, dir, env, nil)
	if err != nil {
		return nil, nil, err
	}
	details := types.ConfigDetails{WorkingDir: path.Join(Root, dir), Environment: env}
	dict["name"] = projectName
	if dict, err = loader.Normalize(dict, env); err != nil {
		return nil, nil, err
	}
	bind := func(dict map[string]any, check bool) (*types.Project, error) {
		opts := loader.ToOptions(&details, []func(*loader.Options){func(o *loader.Options) {
			o.SetProjectName(projectName, true)
			o.Profiles = l.in.Profiles
			o.SkipConsistencyCheck = !check
			o.SkipResolveEnvironment, o.SkipResolveLabels = true, true
		}})
		return loader.ModelToProject(dict, opts, details)
	}
	again, _ := clone(dict).(map[string]any) // the library modifies its model
	if p, err = bind(dict, false); err != nil {
		return nil, nil, err
	}
	contradiction = func() error {
		if len(p.Services) == 0 {
			return l.stop("consistency", "services", errors.New("no service is enabled; set the profiles that enable some"))
		}
		if err := l.dependencies(p); err != nil {
			return err
		}
		if _, err := bind(again, true); err != nil {
			return l.stop("consistency", "services", err)
		}
		return nil
	}
	return p, contradiction, l.resolveEnvironments(p, env)
}

// mainFiles returns the stack's own files, without symbolic links.
func (l *loading) mainFiles() ([]string, error) {
	named := l.in.Files
	if len(named) == 0 {
		for _, name := range []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"} {
			if e := l.bundle.Lookup(name); e != nil && e.Type == TypeFile {
				named = []string{name}
				break
			}
		}
	}
	if len(named) == 0 {
		return nil, extensions.Errorf(extensions.KindInvalid, "there is no compose file at the root of the bundle").
			At("compose.files").WithRemedy("List the stack's files in compose.files.")
	}
	var files []string
	for i, name := range named {
		at, ok := l.file(".", name, "path-outside", fmt.Sprintf("compose.files[%d]", i))
		if ok {
			files = append(files, at)
		}
	}
	return files, l.found.err()
}

// mainEnv returns what interpolation sees: env files, overridden by the spec's variables.
func (l *loading) mainEnv(dir string) (map[string]string, error) {
	env := maps.Clone(l.in.Env)
	if env == nil {
		env = map[string]string{}
	}
	names := l.in.EnvFiles
	if len(names) == 0 {
		if e := l.bundle.Lookup(path.Join(dir, ".env")); e != nil && e.Type == TypeFile {
			names = []string{path.Join(dir, ".env")}
		}
	}
	from := map[string]string{}
	for i, name := range names {
		where := fmt.Sprintf("compose.env_files[%d]", i)
		at, ok := l.file(".", name, "path-outside", where)
		if !ok {
			continue
		}
		if err := l.envFile(at, where, "", from, env); err != nil {
			return nil, err
		}
	}
	return l.under(env, from), l.found.err()
}

// under adds to env what it lacks, but never a secret's name.
func (l *loading) under(env, more map[string]string) map[string]string {
	for _, k := range slices.Sorted(maps.Keys(more)) {
		if _, ok := env[k]; !ok {
			env[k] = more[k]
		}
	}
	for name := range l.secrets {
		delete(env, name)
	}
	return env
}
