// Package webhook is a built-in kind of job: an HTTP POST, signed, tried again
// until the receiver takes it.
//
//	err := webhook.Register(e, webhook.Config{
//		Secrets: map[string][]webhook.Secret{"acme": {secret}},
//	})
//	_, err = e.Enqueue(ctx, webhook.Post{
//		URL: "https://hooks.acme.example/orders", Body: []byte(`{"order":7}`), Secret: "acme",
//	})
//
// # What a receiver gets
//
// A POST with three headers of the Standard Webhooks specification:
//
//	webhook-id         the job's id: the same for every attempt, so that it can be seen twice and taken once
//	webhook-timestamp  when this attempt was sent, in seconds
//	webhook-signature  v1,<base64 of HMAC-SHA256 over id.timestamp.body>, one for each secret, newest first
//
// A receiver in Go calls Verify; others use a library of that specification.
//
// # What an answer means
//
//	2xx                        done; status and the beginning of the body are the job's result
//	429                        throttled: the queue, or Config.Limit, cools down for Retry-After; no attempt burned
//	410                        dead
//	those of Config.DeadOn     dead
//	all others                 a failure: tried again after Retry-After if there is one, else after the backoff
//	no answer, TLS, DNS        a failure: tried again after the backoff
//	what cannot be sent at all dead: a URL, a header or a body that is out of bounds
//
// Only 410 is final by itself, as in the specification, and as Stripe and Svix do
// it. 400, 401, 403, 404, 405, 413 and 422 are mostly a receiver in the middle of
// a deployment or with the wrong secret, and mend themselves; a post that is
// dead at once is lost until somebody looks. Who knows better says DeadOn.
//
// # Where a post may go
//
// Who can choose a URL must not reach what only this process can: a post to a
// private, local or otherwise special address is refused. It is the address
// that is judged, in the moment of connecting and after the name was resolved, for
// each connection: a name whose answer changes after a check (DNS rebinding)
// gains nothing. Config.AllowAddresses and Config.AllowHosts open what is meant.
//
// Redirects are not followed unless Config.Redirects says so; each hop is judged
// like the first, https never leads to http, and another host gets neither body
// nor signature unless Config.RedirectHosts names it. Proxies of the environment
// are not used.
package webhook
