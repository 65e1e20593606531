package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/moby/moby/api/types/jsonstream"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions/internal/compose"
)

const (
	maxBuildMessage = 16 << 20 // bytes of one message of a builder
	maxTail         = 2000     // bytes of a failed build's output in its error
	maxBuildLayers  = 4096     // layers of one build that are remembered
)

var (
	stepLine  = regexp.MustCompile(`^Step (\d+)/(\d+) : (.*)`)
	layerLine = regexp.MustCompile(`^ ---> ([0-9a-f]{12})\n?$`)
	runLine   = regexp.MustCompile(`^ ---> Running in ([0-9a-f]{12})\n?$`)
)

// watch reads what a builder says.
type watch struct {
	backend *Backend
	build   compose.Build
	subject string
	since   time.Time
	layers  []string // of this build, by the beginning of their ids
	said    []byte   // the end of the output
}

// read follows one build. The error is the builder's.
func (w *watch) read(ctx context.Context, r io.Reader) error {
	w.said = nil
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxBuildMessage)
	for lines.Scan() {
		var m jsonstream.Message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return extensions.Errorf(extensions.KindUnavailable, "the engine's answer to a build cannot be read: %s",
				extensions.Clean(err.Error(), 200))
		}
		switch {
		case m.Error != nil:
			return m.Error
		case m.Aux != nil && m.ID == "moby.buildkit.trace":
			w.trace(ctx, *m.Aux)
		case m.Stream != "":
			w.line(ctx, m.Stream)
		}
	}
	return lines.Err()
}

// line is one message of the classic builder.
func (w *watch) line(ctx context.Context, text string) {
	if m := stepLine.FindStringSubmatch(text); m != nil {
		extensions.Progress(ctx, w.subject, "step "+m[1]+" of "+m[2]+": "+m[3])
	} else if m := layerLine.FindStringSubmatch(text); m != nil && len(w.layers) < maxBuildLayers {
		w.layers = append(w.layers, m[1])
	} else if m := runLine.FindStringSubmatch(text); m != nil && w.build.Pids > 0 {
		w.backend.bound(ctx, m[1], w.build.Pids, w.since)
	}
	w.say([]byte(text))
}

func (w *watch) say(text []byte) {
	w.said = append(w.said, text...)
	if cut := len(w.said) - 2*maxTail; cut > 0 {
		w.said = append([]byte(nil), w.said[cut:]...)
	}
}

// tail returns the end of the output, fit for a message.
func (w *watch) tail() string {
	text := strings.ToValidUTF8(string(w.said[max(len(w.said)-maxTail, 0):]), string(utf8.RuneError))
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, extensions.Clean(strings.TrimRight(line, "\r\n"), 500))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// Fields of BuildKit's StatusResponse, Vertex and VertexLog.
const (
	statusVertexes, statusLogs = 1, 3
	vertexName, logMessage     = 3, 4
)

// trace is one message of BuildKit: the steps that changed, and what they printed.
func (w *watch) trace(ctx context.Context, aux json.RawMessage) {
	var status []byte
	if json.Unmarshal(aux, &status) != nil {
		return
	}
	fields(status, func(number protowire.Number, part []byte) {
		fields(part, func(inner protowire.Number, text []byte) {
			switch {
			case number == statusVertexes && inner == vertexName:
				extensions.Progress(ctx, w.subject, string(text))
			case number == statusLogs && inner == logMessage:
				w.say(text)
			}
		})
	})
}

// fields calls visit with the byte strings of a protobuf message.
func fields(message []byte, visit func(protowire.Number, []byte)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(message)
			if n < 0 {
				return
			}
			visit(number, value)
			message = message[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return
		}
		message = message[n:]
	}
}
