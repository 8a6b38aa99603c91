package webui_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/server/auth"
	"github.com/pawlwork/pawl/server/webui"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite"
)

// heldBack is a log whose readers wait for transactions.
type heldBack struct {
	*sqlite.Store
	by []store.LogHolder
}

func (h *heldBack) Open(ctx context.Context, s store.Settings) (store.Store, error) {
	opened, err := sqlite.Memory().Open(ctx, s)
	if err != nil {
		return nil, err
	}
	h.Store = opened.(*sqlite.Store)
	return h, nil
}

func (h *heldBack) LogHolders(context.Context) ([]store.LogHolder, error) { return h.by, nil }

// The page of streams names the transaction that readers wait for, once it is open for long, and a prepared one at once.
func TestU7_StreamsSayWhatReadersWaitFor(t *testing.T) {
	old := store.LogHolder{PID: 123, Application: "shop <b>", User: "ann", State: "idle in transaction", Began: time.Now().Add(-12 * time.Second), Age: 12 * time.Second}
	young := store.LogHolder{PID: 456, Application: "mails", Age: time.Second, Began: time.Now()}
	prepared := store.LogHolder{Prepared: true, Name: "forgotten"}
	for _, c := range []struct {
		by   []store.LogHolder
		want string
	}{
		{nil, ""},
		{[]store.LogHolder{young}, ""},
		{[]store.LogHolder{young, old}, "the transaction of pid 123 (shop &lt;b&gt;, user ann, idle in transaction)</bdi>, which has published events and began"},
		{[]store.LogHolder{old, prepared}, "and for 1 more"},
		{[]store.LogHolder{prepared}, "the prepared transaction &#34;forgotten&#34;</bdi>, which has published events. They"},
	} {
		h := &heldBack{by: c.by}
		e, err := pawl.New(h, pawl.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(webui.Handler(e, auth.Open("tester")))
		r, err := http.Get(server.URL + "/streams")
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(r.StatusCode, err)
		}
		_ = r.Body.Close()
		server.Close()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if text := string(page); strings.Contains(text, "Readers wait") != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%v: the page does not say %q", c.by, c.want)
			if at := strings.Index(text, "Readers wait"); at >= 0 {
				t.Log(text[at:min(at+400, len(text))])
			}
		}
	}
}
