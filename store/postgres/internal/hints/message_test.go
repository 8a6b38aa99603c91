package hints

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl/store"
)

// listened is a room that notes what its frontiers are told.
func listened() (*Room, *[]string) {
	var done []string
	r := &Room{instance: "me", intents: func() { done = append(done, "intents") }}
	r.Register(Frontier{
		Lower: func(queue string, priority int, due time.Time) {
			done = append(done, fmt.Sprintf("lower %s %d %d", queue, priority, due.UnixMicro()))
		},
		Wake: func(queue string) { done = append(done, "wake "+queue) },
		Drop: func() { done = append(done, "drop") },
	})
	return r, &done
}

func (r *Room) heard(text string) (list []store.Hint) {
	r.hear(text, func(h store.Hint) { list = append(list, h) })
	return list
}

// One message carries several subjects, and each comes out as it went in.
func TestP5_AMessageCarriesSeveralSubjects(t *testing.T) {
	r, done := listened()
	due := time.UnixMicro(1_700_000_000_000_001).UTC()
	hints := []store.Hint{
		{Subject: store.SubjectQueue, Name: "q", Priority: -3, Due: due},
		{Subject: store.SubjectQueue, Name: "p"},
		{Subject: store.SubjectJob, Name: "0190"},
		{Subject: store.SubjectMembers},
		{Subject: store.SubjectSetting, Name: "queue/q"},
		{Subject: store.SubjectTopic, Name: "orders"},
		{Subject: store.SubjectIntent},
	}
	m := message{By: "another"}
	for _, h := range hints {
		m.add(h)
	}
	if got := r.heard(m.encode()); !slices.Equal(got, hints) {
		t.Errorf("heard %+v, want %+v", got, hints)
	}
	if want := []string{fmt.Sprintf("lower q -3 %d", due.UnixMicro()), "wake p", "intents"}; !slices.Equal(*done, want) {
		t.Errorf("the frontier was told %q, want %q", *done, want)
	}
	if m.By = "me"; len(r.heard(m.encode())) > 0 {
		t.Error("heard its own message")
	}
	m.By = "another"
	m.add(store.Hint{Subject: store.SubjectTopic, Name: strings.Repeat("x", maxTold)})
	if got := r.heard(m.encode()); !slices.Equal(got, []store.Hint{{}}) {
		t.Errorf("of too many hints, heard %+v, want: look at everything", got)
	}
}

// Every subject that this build knows is heard.
func TestP5_EverySubjectIsHeard(t *testing.T) {
	for subject := store.SubjectAll; subject < store.SubjectEnd; subject++ {
		r, _ := listened()
		m := message{By: "another"}
		m.add(store.Hint{Subject: subject})
		if got := r.heard(m.encode()); len(got) != 1 || got[0].Subject != subject {
			t.Errorf("of subject %d, heard %+v", subject, got)
		}
	}
}

// A build that is older than the one that tells ignores what it does not know, and hears the rest: looks at everything for
// every new subject would make each deploy a storm.
func TestP5_AnUnknownSubjectIsIgnored(t *testing.T) {
	r, done := listened()
	for text, want := range map[string][]store.Hint{
		`{"by":"newer","h":[{"s":99,"n":"new"}]}`:                              nil,
		`{"by":"newer","h":[{"s":99},{"s":2,"x":{"y":[1]}},{"s":-1}],"z":"w"}`: {{Subject: store.SubjectJob}},
		`{"by":"newer"}`: nil,
	} {
		if got := r.heard(text); !slices.Equal(got, want) {
			t.Errorf("of %s, heard %+v, want %+v", text, got, want)
		}
	}
	if len(*done) > 0 { // before what follows
		t.Errorf("the frontier was told %q", *done)
	}
	if got := r.heard("a word of nobody"); !slices.Equal(got, []store.Hint{{}}) {
		t.Errorf("of what is no message, heard %+v, want: look at everything", got)
	}
}
