package openshelltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// startIssuer runs an OIDC issuer that knows one client.
func (g *Gateway) startIssuer() {
	g.ClientID, g.Secret, g.token = "sandboxer-tests", "secret-"+random(11), "token-"+random(11)
	mux := http.NewServeMux()
	g.issuer = httptest.NewServer(mux)
	g.Issuer = g.issuer.URL + "/realms/tests"
	answer := func(w http.ResponseWriter, code int, body map[string]any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	mux.HandleFunc("GET /realms/tests/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"issuer": g.Issuer, "token_endpoint": g.issuer.URL + "/token"})
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		id, secret, basic := r.BasicAuth()
		if !basic {
			id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
		}
		if id != g.ClientID || secret != g.Secret || r.PostFormValue("grant_type") != "client_credentials" {
			answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
			return
		}
		answer(w, http.StatusOK, map[string]any{"access_token": g.token, "token_type": "Bearer", "expires_in": 3600})
	})
}

// certify makes an authority, the gateway's certificate and a client's, in a folder as the vendor's command line keeps it.
func (g *Gateway) certify(t testing.TB) {
	t.Helper()
	g.Folder = t.TempDir()
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, kind string, b []byte) {
		fatal(os.WriteFile(filepath.Join(g.Folder, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
	}
	serial := int64(0)
	sign := func(of, by *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		fatal(err)
		if signer == nil {
			signer = key
		}
		serial++
		of.SerialNumber, of.NotBefore, of.NotAfter = big.NewInt(serial), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, of, by, &key.PublicKey, signer)
		fatal(err)
		return der, key
	}
	authority := &x509.Certificate{Subject: pkix.Name{CommonName: "authority of tests"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	root, rootKey := sign(authority, authority, nil)
	server, serverKey := sign(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, authority, rootKey)
	client, clientKey := sign(&x509.Certificate{Subject: pkix.Name{CommonName: "client of tests"}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, authority, rootKey)
	write("ca.crt", "CERTIFICATE", root)
	write("tls.crt", "CERTIFICATE", client)
	der, err := x509.MarshalPKCS8PrivateKey(clientKey)
	fatal(err)
	write("tls.key", "PRIVATE KEY", der)
	parsed, err := x509.ParseCertificate(root)
	fatal(err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	g.tls = &tls.Config{MinVersion: tls.VersionTLS12, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
		Certificates: []tls.Certificate{{Certificate: [][]byte{server}, PrivateKey: serverKey}}}
}
