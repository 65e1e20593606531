package profile

import (
	"strings"
	"testing"
)

func TestImagesThatNoOrderCanBuildAreRefusedWhereTheyStand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"image: { stages: [{context: a, tag: a}, {context: b, tag: b, parent_tag: a}] }":                                              "",
		"image: { bundle: tools, build: {context: a, parent_tag: \"python:3\"} }":                                                     "",
		"image: { stages: [{context: a, tag: a, parent_tag: b}, {context: b, tag: b}] }":                                              ":3:52: stage 1 builds on \"b\"",
		"image: { stages: [{context: a, tag: a, parent_tag: a}] }":                                                                    "which is no earlier stage",
		"image: { build: {context: a, tag: a, parent_tag: a} }":                                                                       "which is no earlier stage",
		"image: { stages: [{context: a, tag: a}, {context: b, tag: a}] }":                                                             "have the same tag \"a\"",
		"image: { bundle: ../tools, build: {context: a} }":                                                                            "the bundle",
		"containers: { agent: {image: {bundle: a, build: {context: x}}}, services: {db: {image: {bundle: b, build: {context: x}}}} }": "another image comes from the bundle",
		"image: { pull: x, build: {context: a} }":                                                                                     "are set together",
		"image: { stages: [] }": "stages is empty",
	} {
		p, err := Parse("p.yaml", []byte("id: profile.p\nversion: \"1.0.0\"\n"+text+"\n"))
		if err == nil {
			err = checkWhole(p)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
