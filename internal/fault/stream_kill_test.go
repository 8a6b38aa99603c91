//go:build fault

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlwork/pawl"
	"github.com/pawlwork/pawl/stream"
)

// parcels is a test of consumers: processes, and what they are given.
type parcels struct {
	*fleet
	g         *ground
	chance    *rand.Rand
	consumers []*process
	killed    int
	deaths    map[string]int // by the number of the poison
}

// keys is how many there are.
const keys = 37

func newParcels(t *testing.T, g *ground, events, deliveries int, poison ...int) *parcels {
	t.Helper()
	p := &parcels{fleet: newFleet(t, g.address), g: g, chance: seeded(t), deaths: map[string]int{}}
	p.env = []string{fmt.Sprintf("%s=%d", deliveriesVariable, deliveries)}
	number := "bigserial primary key"
	if strings.HasPrefix(g.address, "sqlite") {
		number = "integer primary key autoincrement"
	}
	err := g.Tx(t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
		_, err := tx.Exec(ctx, "create table arrival (id "+number+", n bigint)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []pawl.EventItem
	for n := range events {
		list = append(list, pawl.NewEvent("parcels", parcel{n, slices.Contains(poison, n)}, pawl.Key(fmt.Sprint("k", n%keys))))
	}
	for some := range slices.Chunk(list, 500) {
		if _, err := g.PublishMany(t.Context(), some...); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		p.consumers = append(p.consumers, p.start("consumer"))
	}
	return p
}

// again starts a process in the place of one.
func (p *parcels) again(of *process) {
	p.t.Helper()
	for i, c := range p.consumers {
		if c == of {
			p.consumers[i] = p.start("consumer")
		}
	}
}

func (p *parcels) killOne() {
	p.t.Helper()
	c := p.consumers[p.chance.IntN(len(p.consumers))]
	p.kill(c)
	p.killed++
	p.again(c)
}

// over reports whether both groups have nothing left.
func (p *parcels) over() bool {
	p.t.Helper()
	for _, name := range []string{"once", "line"} {
		info, err := p.g.Group(name).Info(p.t.Context())
		if err != nil || info.Behind+info.Open+info.Waiting > 0 {
			return false
		}
	}
	return true
}

// untilOver acts on what consumers say until nothing is left: kills after as many are done, and
// with every tick of the clock.
func (p *parcels) untilOver(kills []int, clock <-chan time.Time) {
	p.t.Helper()
	look := time.NewTicker(300 * time.Millisecond)
	defer look.Stop()
	done := 0
	for late := time.After(10 * time.Minute); ; {
		select {
		case s := <-p.said:
			p.note(s)
			switch {
			case s.words == nil:
				p.again(s.by)
			case s.words[0] == "poisoned":
				p.deaths[s.words[1]]++
			case s.words[0] == "done":
				if done++; len(kills) > 0 && done >= kills[0] {
					kills = kills[1:]
					p.killOne()
				}
			}
		case <-clock:
			p.killOne()
		case <-look.C:
			if len(kills) == 0 && p.over() {
				return
			}
		case <-late:
			info, err := p.g.Group("once").Info(context.Background())
			p.t.Fatalf("%d are done and %d kills left: %+v, %v", done, len(kills), info, err)
		}
	}
}

// expect demands each effect once, but those of some, and each key's events in their order: one after the other, and
// where a process died once more from one whose acknowledgement was lost with it, none left out.
func (p *parcels) expect(events int, but ...int) {
	p.t.Helper()
	times := make([]int, events)
	for _, n := range p.g.rows() {
		times[n]++
	}
	wrong := 0
	for n, have := range times {
		want := 1
		if slices.Contains(but, n) {
			want = 0
		}
		if have != want {
			if wrong++; wrong < 10 {
				p.t.Errorf("parcel %d has %d effects, want %d", n, have, want)
			}
		}
	}
	deaths := p.killed
	for _, n := range p.deaths {
		deaths += n
	}
	last, arrived, back := map[int]int{}, 0, map[int]int{}
	for k := range keys {
		last[k] = k - keys
	}
	err := p.g.Tx(p.t.Context(), func(ctx context.Context, tx *pawl.Tx) error {
		rows, err := tx.Query(ctx, "select n from arrival order by id")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var n int
			if err := rows.Scan(&n); err != nil {
				return err
			}
			arrived++
			k := n % keys
			switch {
			case n > last[k]+keys:
				p.t.Errorf("parcel %d of key %d arrives after %d: one is left out", n, k, last[k])
			case n <= last[k]:
				if back[k]++; back[k] > deaths {
					p.t.Errorf("parcel %d of key %d arrives after %d, and no process has died in between", n, k, last[k])
				}
			}
			last[k] = n
		}
		return rows.Err()
	})
	if err != nil {
		p.t.Fatal(err)
	}
	for k, n := range last {
		if n+keys < events {
			p.t.Errorf("key %d ends with parcel %d of %d", k, n, events)
		}
	}
	if again := arrived - events; again < 0 || again > deaths*inFlight*4 {
		p.t.Errorf("%d arrivals of %d parcels, with %d deaths", arrived, events, deaths)
	}
	p.t.Logf("%d parcels, %d processes killed, poison: %v, %d arrived again in line", events, p.killed, p.deaths, arrived-events)
}

func (p *parcels) letters() (numbers []int) {
	p.t.Helper()
	for e, err := range p.g.Events(p.t.Context(), stream.Filter{Topic: "dead"}, stream.FromStart()) {
		if err != nil {
			p.t.Fatal(err)
		}
		var d parcel
		if err := p.g.Decode(e, &d); err != nil {
			p.t.Fatal(err)
		}
		numbers = append(numbers, d.N)
	}
	slices.Sort(numbers)
	return numbers
}

// TestFault_E14_E28_KilledConsumers kills consumers while they work. Nothing is lost; an effect that is acknowledged in
// its transaction is there once; the events of a key are handled in their order, and again only where an
// acknowledgement was lost with its process.
func TestFault_E14_E28_KilledConsumers(t *testing.T) {
	each(t, func(t *testing.T, g *ground) {
		events, kills := 5_000, 8
		var clock <-chan time.Time
		if long() {
			events, kills = 50_000, 0
			defer g.watch()()
			// stimulus: a kill every 300 ms, until everything is done.
			ticker := time.NewTicker(300 * time.Millisecond)
			defer ticker.Stop()
			clock = ticker.C
		}
		p := newParcels(t, g, events, 1_000)
		var at []int
		for range kills {
			at = append(at, 100+p.chance.IntN(events*3/4))
		}
		slices.Sort(at)
		p.untilOver(at, clock)
		for _, c := range p.consumers {
			p.finish(c)
		}
		p.expect(events)
		if letters := p.letters(); len(letters) > 0 {
			t.Errorf("%v are dead letters, and nobody failed", letters)
		}
	})
}

// TestFault_E11_PoisonEndsItsProcess has two events that end whatever process handles them. They are dead letters after
// their deliveries, and nothing else is, however often it was beside them.
func TestFault_E11_PoisonEndsItsProcess(t *testing.T) {
	each(t, func(t *testing.T, g *ground) {
		events, poison := 1_000, []int{101, 613}
		if long() {
			events = 20_000
			defer g.watch()()
		}
		p := newParcels(t, g, events, 1, poison...)
		p.untilOver(nil, nil)
		for _, c := range p.consumers {
			p.finish(c)
		}
		p.expect(events, poison...)
		if letters := p.letters(); !slices.Equal(letters, poison) {
			t.Errorf("%v are dead letters, want %v", letters, poison)
		}
		for _, n := range poison {
			if deaths := p.deaths[fmt.Sprint(n)]; deaths < 1 || deaths > 5 {
				t.Errorf("parcel %d ended %d processes", n, deaths)
			}
		}
	})
}

func each(t *testing.T, test func(t *testing.T, g *ground)) {
	t.Run("sqlite", func(t *testing.T) { test(t, onSQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, onPostgres(t)) })
}
