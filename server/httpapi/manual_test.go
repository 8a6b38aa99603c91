package httpapi_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
)

var updateManual = flag.Bool("update-manual", false, "write the routes of docs/api.md anew")

const manual = "../../docs/api.md"

func readManual(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The page cannot rot: its table is the document's.
func TestU2_TheManualNamesEveryRoute(t *testing.T) {
	const begin, end = "<!-- routes -->\n", "<!-- end of routes -->"
	page := readManual(t)
	before, rest, found := strings.Cut(page, begin)
	table, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no %q or no %q", manual, begin, end)
	}
	routes, _ := describedRoutes(t, serve(t, auth.Open("ops")))
	var want strings.Builder
	want.WriteString("| route | role | does |\n|---|---|---|\n")
	for _, r := range routes {
		fmt.Fprintf(&want, "| `%s %s` | %s | %s |\n", r.Method, r.Path, r.Role, r.Summary)
	}
	if table == want.String() {
		return
	}
	if !*updateManual {
		t.Fatalf("the routes of %s are out of step; write them anew with -update-manual", manual)
	}
	if err := os.WriteFile(manual, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// commands are the curl commands of a page, in their order: the words of each.
func commands(page string) (list [][]string) {
	open := false
	for line := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(line, "```") {
			open = line == "```sh"
			continue
		}
		if line, _, _ = strings.Cut(line, "  #"); open && strings.HasPrefix(line, "curl ") {
			list = append(list, shellWords(strings.TrimPrefix(line, "curl ")))
		}
	}
	return list
}

// shellWords splits a line as a shell does, as far as the page needs it.
func shellWords(line string) (list []string) {
	var word strings.Builder
	quote := rune(0)
	for _, c := range line + " " {
		switch {
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		case c == ' ' && quote == 0:
			if word.Len() > 0 {
				list = append(list, word.String())
			}
			word.Reset()
		default:
			word.WriteRune(c)
		}
	}
	return list
}

// request is what curl makes of the words.
func request(t *testing.T, words []string, place *strings.Replacer) *http.Request {
	t.Helper()
	method, address, body := "", "", ""
	header := http.Header{}
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "-X":
			i++
			method = words[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			header.Set(name, value)
		case "--json":
			i++
			body = words[i]
			header.Set("Content-Type", "application/json")
			if method == "" {
				method = http.MethodPost
			}
		default:
			address = place.Replace(words[i])
		}
	}
	if method == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	return r
}

func TestU2_TheCommandsOfTheManualWork(t *testing.T) {
	s := serve(t, auth.Open("ops"))
	pawl.HandleRawResult(s.e, "sum", func(context.Context, *pawl.Job[pawl.Raw]) (pawl.Raw, error) { return pawl.Raw(`5`), nil })
	billing := s.subscribe("billing")
	s.run()
	s.call("POST", "/api/v1/topics/orders.placed/events", `{"events":[{"data":"bad"},{"data":"hold"}]}`, 201, nil)
	<-billing.holds
	billing.leave(t)
	id, duplicates, list := "", 0, commands(readManual(t))
	for _, command := range list {
		r := request(t, command, strings.NewReplacer("$PAWL", s.url+"/api/v1", "$ID", id))
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode >= 300 {
			t.Errorf("%s %s: %s, %s %v", r.Method, r.URL, answer.Status, text, err)
		}
		var receipt struct {
			ID        string `json:"id"`
			Duplicate bool   `json:"duplicate"`
		}
		if strings.HasSuffix(r.URL.Path, "/jobs") && r.Method == http.MethodPost && json.Unmarshal(text, &receipt) == nil {
			if id = receipt.ID; receipt.Duplicate {
				duplicates++
			}
		}
	}
	if len(list) < 25 || duplicates != 1 {
		t.Errorf("%d commands, %d duplicates", len(list), duplicates)
	}
}
