package docfacts

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	hostScripts = "internal/extensions/composessh/sh/*.sh"
	leases      = "internal/extensions/internal/hostlease/sh/*.sh"
	walls       = "internal/extensions/internal/netwall/sh/*.sh"
	hostPayload = "internal/extensions/composessh/provision.go"
)

// The page on Compose over SSH lists what scripts keep on the host: every file
// they name below the root and below a sandbox's folder, and no other.
func TestTheHostsFilesAreThoseOfTheScripts(t *testing.T) {
	t.Parallel()
	_, table, ok := strings.Cut(pages(t)["docs/design/compose-ssh.md"], "<!-- host files")
	table, _, ok2 := strings.Cut(table, "<!-- /host files -->")
	if !ok || !ok2 {
		t.Fatal("the table of the host's files is not marked")
	}
	var page []string
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		page = append(page, firstGroups(regexp.MustCompile("`([^`]+)`"), cell)...)
	}

	// Where the payload puts what scripts do not name.
	sent := firstGroups(regexp.MustCompile(`payloadFile\{"([a-zA-Z0-9.-]+)"`), sources(t, hostPayload))
	if len(sent) == 0 {
		t.Fatal("the payload names no file: the pattern of this test is wrong")
	}
	var code []string
	for _, name := range sent {
		code = append(code, "<id>/"+name)
	}
	place := regexp.MustCompile(`\$\{?(root|box)\}?/(\.?[a-zA-Z][a-zA-Z0-9._-]*)(\$id)?`)
	for _, m := range place.FindAllStringSubmatch(sources(t, hostScripts, leases, walls), -1) {
		// The second half of a write goes by another name for a moment.
		name := regexp.MustCompile(`(\.new2?|\.)$`).ReplaceAllString(m[2], "")
		switch {
		case strings.HasPrefix(name, "sbx-"): // the folders of the sandboxes
		case m[1] == "box":
			code = append(code, "<id>/"+name)
		case m[3] != "":
			code = append(code, name+"<id>")
		default:
			code = append(code, name)
		}
	}
	// What docker said lately goes by the name that is given.
	for _, name := range firstGroups(regexp.MustCompile(`\bseen_lately ([a-z]+)`), sources(t, hostScripts)) {
		code = append(code, name, ".lock")
	}
	slices.Sort(page)
	slices.Sort(code)
	page, code = slices.Compact(page), slices.Compact(code)
	for _, name := range code {
		if !slices.Contains(page, name) {
			t.Errorf("scripts keep %s on the host, and the page does not say so", name)
		}
	}
	for _, name := range page {
		if !slices.Contains(code, name) {
			t.Errorf("the page says that %s is on the host, and no script names it", name)
		}
	}
}

func TestTheHostsObjectsHaveTheLabelsOfTheScripts(t *testing.T) {
	t.Parallel()
	_, section, _ := strings.Cut(pages(t)["docs/design/compose-ssh.md"], "## What is on the host")
	section, _, _ = strings.Cut(section, "\n## ")
	labels := firstGroups(regexp.MustCompile(`(?:label[= "]+|LABEL )(sandboxer\.[a-z-]+)=`), sources(t, hostScripts, leases, walls))
	if len(labels) < 5 {
		t.Fatalf("scripts give only the labels %q: the pattern of this test is wrong", labels)
	}
	for _, l := range labels {
		if !strings.Contains(section, "`"+l+"`") {
			t.Errorf("scripts give the label %s, and the page does not say what has it", l)
		}
	}
}
