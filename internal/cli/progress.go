package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sand-boxer/terraform-provider-sandboxer/internal/extensions"
)

// working shows, on a terminal, what long work is doing until done is called. Elsewhere a.notify prints lines of it.
func (a *app) working(ctx context.Context, what string) (_ context.Context, done func()) {
	if a.errScreen == nil {
		return ctx, func() {}
	}
	p := &progress{to: a.err, on: a.errScreen, subject: what, since: time.Now()}
	ended := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() { p.run(ended) })
	a.progress = p
	return extensions.WithProgress(ctx, p.tell), sync.OnceFunc(func() {
		close(ended)
		drawing.Wait()
		a.progress = nil
	})
}

const (
	frameTime = 100 * time.Millisecond
	// quietTime is how long work shows nothing, so that what is quick leaves the terminal alone.
	quietTime = 300 * time.Millisecond
	barCells  = 20
	leastBar  = 60 // columns of a terminal with room for a bar
)

// progress is one line of a terminal, redrawn while work goes on. Without colors there is nothing that NO_COLOR would
// take away.
type progress struct {
	mu              sync.Mutex
	to              io.Writer
	on              *terminal
	subject, detail string
	since           time.Time // the subject began
	frame           int
	drawn           bool
}

func (p *progress) tell(subject, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if subject != p.subject {
		p.since = time.Now()
	}
	p.subject, p.detail = subject, detail
}

func (p *progress) run(ended <-chan struct{}) {
	start := time.NewTimer(quietTime)
	defer start.Stop()
	select {
	case <-ended:
		return
	case <-start.C:
	}
	next := time.NewTicker(frameTime)
	defer next.Stop()
	for {
		p.draw()
		select {
		case <-ended:
			p.apart(func() {})
			return
		case <-next.C:
		}
	}
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	width, _ := p.on.size()
	p.frame++
	_, _ = io.WriteString(p.to, "\r"+p.line(width, time.Now())+eraseRest) // nobody is left to tell
	p.drawn = true
}

const eraseRest = "\x1b[K"

// apart prints something else than the line of progress.
func (p *progress) apart(show func()) {
	if p == nil {
		show()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		_, _ = io.WriteString(p.to, "\r"+eraseRest)
		p.drawn = false
	}
	show()
}

var share = regexp.MustCompile(`^(\d+) of (\d+)\b`)

// line is what a terminal of this width shows.
func (p *progress) line(width int, now time.Time) string {
	const spin = `|/-\`
	text := spin[p.frame%len(spin):][:1] + " " + p.subject
	took := "  " + short(now.Sub(p.since))
	if m := share.FindStringSubmatch(p.detail); m != nil && width >= leastBar {
		text += "  " + bar(m[1], m[2])
	}
	if p.detail != "" {
		text += "  " + p.detail
	}
	if width == 0 {
		return text + took
	}
	return ansi.Truncate(text, max(width-1-len(took), 0), "…") + took // a full line would wrap
}

func bar(done, of string) string {
	n, err1 := strconv.ParseInt(done, 10, 64)
	all, err2 := strconv.ParseInt(of, 10, 64)
	if err1 != nil || err2 != nil || all == 0 || n > all {
		return ""
	}
	full := int(float64(barCells) * float64(n) / float64(all))
	return fmt.Sprintf("[%s%s]", strings.Repeat("#", full), strings.Repeat("-", barCells-full))
}
