package verceltest

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// gateway answers for all routes. A request names its sandbox and port by its host.
func (v *Vendor) gateway(w http.ResponseWriter, r *http.Request) {
	name, _, _ := strings.Cut(r.Host, ".")
	v.tick()
	v.mu.Lock()
	to := ""
	for _, s := range v.sandboxes {
		for _, open := range s.routes {
			if open.subdomain == name && s.status == "running" {
				to = v.listeners[open.port]
			}
		}
	}
	v.mu.Unlock()
	if to == "" {
		http.Error(w, "SANDBOX_NOT_FOUND", http.StatusBadGateway)
		return
	}
	httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: to}).ServeHTTP(w, r)
}
