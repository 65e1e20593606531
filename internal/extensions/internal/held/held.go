// Package held keeps what is good for a while, such as a token, and lets one caller at a time fetch it anew.
package held

import (
	"context"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Expiry is when a JWT says that it ends; zero = it says nothing. Nobody has checked it.
func Expiry(token string) time.Time {
	var claims jwt.RegisteredClaims
	_, _, err := jwt.NewParser(jwt.WithPaddingAllowed()).ParseUnverified(token, &claims)
	if err != nil || claims.ExpiresAt == nil {
		return time.Time{}
	}
	return claims.ExpiresAt.UTC()
}

// Life is how long a JWT is good for from now on; otherwise if it does not say.
func Life(token string, otherwise time.Duration) time.Duration {
	at := Expiry(token)
	if at.IsZero() {
		return otherwise
	}
	return time.Until(at)
}

// Value is one such thing.
type Value[T any] struct{ turn chan entry[T] } // who needs it takes it out

type entry[T any] struct {
	v     T
	until time.Time
}

// New returns one that must be fetched.
func New[T any]() Value[T] {
	turn := make(chan entry[T], 1)
	turn <- entry[T]{}
	return Value[T]{turn: turn}
}

// Get returns the value, fetched if its time is over. fetch says until when its answer is to be used. The error is fetch's, or
// that of a context that ended while another caller fetched.
func (h Value[T]) Get(ctx context.Context, fetch func(context.Context) (v T, until time.Time, err error)) (T, error) {
	var e entry[T]
	select {
	case e = <-h.turn:
	case <-ctx.Done():
		return e.v, ctx.Err()
	}
	defer func() { h.turn <- e }()
	if time.Now().Before(e.until) {
		return e.v, nil
	}
	v, until, err := fetch(ctx)
	if err == nil {
		e = entry[T]{v, until}
	}
	return v, err
}
