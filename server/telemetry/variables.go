package telemetry

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"
)

// variables are what the environment asks for, checked.
type variables struct {
	traces     []string // of otlp and console
	metrics    bool     // by otlp
	logs       bool     // asked for, and not there
	propagator propagation.TextMapPropagator
}

// variable is what the environment says; one that is empty is not set.
func variable(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// otlp is a variable of the exporter for one signal, and its name: the signal's own, or the
// one for all.
func otlp(signal, name string) (value, full string) {
	full = "OTEL_EXPORTER_OTLP_" + signal + "_" + name
	if value = variable(full); value != "" {
		return value, full
	}
	full = "OTEL_EXPORTER_OTLP_" + name
	return variable(full), full
}

// readVariables checks all variables, since what the SDK does with a wrong one is to log it
// (with its value, also where that is a secret) and to go on with something else.
func readVariables() (v variables, err error) {
	switch off := variable("OTEL_SDK_DISABLED"); strings.ToLower(off) {
	case "", "false":
	case "true":
		return v, nil
	default:
		return v, unsupported("OTEL_SDK_DISABLED", off, "true", "false")
	}
	var faults []error
	fault := func(err error) { faults = append(faults, err) }
	var metrics []string
	v.traces, err = exporters("TRACES", "otlp", "console")
	fault(err)
	metrics, err = exporters("METRICS", "otlp", "prometheus") // the latter is at /metrics in any case
	fault(err)
	v.metrics = slices.Contains(metrics, "otlp")
	v.logs = !slices.Contains([]string{"", "none"}, variable("OTEL_LOGS_EXPORTER"))
	if slices.Contains(v.traces, "otlp") {
		fault(checkOTLP("TRACES"))
	}
	if v.metrics {
		fault(checkOTLP("METRICS"))
	}
	if len(v.traces) > 0 {
		fault(checkSampler())
		fault(checkNumbers(traceNumbers))
	}
	if v.metrics {
		fault(checkNumbers(metricNumbers))
	}
	v.propagator, err = propagators()
	fault(err)
	return v, errors.Join(faults...)
}

func unsupported(name, value string, known ...string) error {
	return fmt.Errorf("%s %.100q: is not supported; must be one of %s", name, value, strings.Join(known, ", "))
}

// exporters are those of a signal. Without a word they are otlp where an endpoint is set,
// and none where none is: a program that was not asked to must not call anybody.
func exporters(signal string, known ...string) ([]string, error) {
	name := "OTEL_" + signal + "_EXPORTER"
	value := variable(name)
	if value == "" {
		if endpoint, _ := otlp(signal, "ENDPOINT"); endpoint != "" {
			return []string{"otlp"}, nil
		}
		return nil, nil
	}
	var list []string
	for part := range strings.SplitSeq(value, ",") {
		switch part = strings.ToLower(strings.TrimSpace(part)); {
		case part == "none":
		case !slices.Contains(known, part):
			return nil, unsupported(name, part, append([]string{"none"}, known...)...)
		case !slices.Contains(list, part):
			list = append(list, part)
		}
	}
	return list, nil
}

// defaultEndpoint is the standard's; the exporters would take https.
const defaultEndpoint = "http://localhost:4318"

// checkEndpoint checks where a signal goes. Its errors do not repeat it: it may hold a
// password.
func checkEndpoint(signal string) error {
	text, name := otlp(signal, "ENDPOINT")
	u, err := url.Parse(cmp.Or(text, defaultEndpoint))
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s: must be a URL such as %s", name, defaultEndpoint)
	case u.User != nil:
		return fmt.Errorf("%s: must not have a user: use OTEL_EXPORTER_OTLP_HEADERS", name)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s: must not have a query or fragment: use OTEL_EXPORTER_OTLP_HEADERS", name)
	}
	insecure, option := otlp(signal, "INSECURE")
	if insecure != "" && strings.EqualFold(insecure, "true") != (u.Scheme == "http") {
		return fmt.Errorf("%s %.100q: must say what %s says, whose scheme is %s", option, insecure, name, u.Scheme)
	}
	return nil
}

// checkOTLP checks the variables of one signal.
func checkOTLP(signal string) error {
	faults := []error{checkEndpoint(signal)}
	if protocol, name := otlp(signal, "PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		faults = append(faults, unsupported(name, protocol, "http/protobuf"))
	}
	if compression, name := otlp(signal, "COMPRESSION"); compression != "" && compression != "gzip" && compression != "none" {
		faults = append(faults, unsupported(name, compression, "gzip", "none"))
	}
	_, err := otlpTimeout(signal)
	faults = append(faults, err)
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_" + signal + "_HEADERS"} {
		faults = append(faults, checkHeaders(name))
	}
	return errors.Join(faults...)
}

// longestTimeout bounds one call of a collector.
const longestTimeout = 10 * time.Minute

// otlpTimeout is how long one call of the collector may take.
func otlpTimeout(signal string) (time.Duration, error) {
	text, name := otlp(signal, "TIMEOUT")
	if text == "" {
		return 10 * time.Second, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > int(longestTimeout.Milliseconds()) {
		return 0, fmt.Errorf("%s %.100q: must be a number of milliseconds, 1..%d", name, text, longestTimeout.Milliseconds())
	}
	return time.Duration(n) * time.Millisecond, nil
}

// checkHeaders names the header that is wrong by its place: any of its parts may be secret.
func checkHeaders(name string) error {
	text := variable(name)
	if text == "" {
		return nil
	}
	for i, pair := range strings.Split(text, ",") {
		key, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(value)
		if !found || err != nil || !isToken(strings.TrimSpace(key)) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("%s: its part %d must be name=value, with other characters in the value as %%xx", name, i+1)
		}
	}
	return nil
}

// isToken reports whether a text may be the name of a header.
func isToken(name string) bool {
	for _, c := range name {
		if c <= ' ' || c > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) {
			return false
		}
	}
	return name != "" && http.CanonicalHeaderKey(name) != ""
}

// checkSampler checks what the SDK reads.
func checkSampler() error {
	const name = "OTEL_TRACES_SAMPLER"
	known := []string{
		"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
	}
	sampler := strings.ToLower(variable(name))
	if sampler == "" {
		return nil
	}
	if !slices.Contains(known, sampler) {
		return unsupported(name, sampler, known...)
	}
	share := variable(name + "_ARG")
	if share == "" || !strings.HasSuffix(sampler, "traceidratio") {
		return nil
	}
	if n, err := strconv.ParseFloat(share, 64); err != nil || !(n >= 0 && n <= 1) {
		return fmt.Errorf("%s_ARG %.100q: must be a number of 0..1", name, share)
	}
	return nil
}

// propagators are how a trace is written into headers.
func propagators() (propagation.TextMapPropagator, error) {
	const name = "OTEL_PROPAGATORS"
	value := variable(name)
	if value == "" {
		return nil, nil
	}
	list := []propagation.TextMapPropagator{}
	for part := range strings.SplitSeq(value, ",") {
		switch part = strings.ToLower(strings.TrimSpace(part)); part {
		case "none":
		case "tracecontext":
			list = append(list, propagation.TraceContext{})
		case "baggage":
			list = append(list, propagation.Baggage{})
		default:
			return nil, unsupported(name, part, "none", "tracecontext", "baggage")
		}
	}
	return propagation.NewCompositeTextMapPropagator(list...), nil
}
