package postgres

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store/postgres/internal/claims"
)

// The predicate of a claim in SQL is job.Offer.Takes, for any offer and needs.
func TestP5_TheClaimsPredicateIsTakes(t *testing.T) {
	s := openInternal(t)
	kinds := []string{"a", "b", "a.b", "ünï"}
	names := []string{"gpu", "disk", "eu"}
	rapid.Check(t, func(t *rapid.T) {
		o := job.Offer{Kinds: map[string]int{}}
		for _, k := range kinds {
			if rapid.Bool().Draw(t, "knows "+k) {
				o.Kinds[k] = rapid.IntRange(0, 2).Draw(t, "newest of "+k)
			}
		}
		o.Capabilities = rapid.SliceOfDistinct(rapid.SampledFrom(names), func(s string) string { return s }).Draw(t, "has")
		kind := rapid.SampledFrom(append(kinds, "unheard.of")).Draw(t, "kind")
		version := rapid.IntRange(0, 3).Draw(t, "version")
		needs := rapid.SliceOfDistinct(rapid.SampledFrom(names), func(s string) string { return s }).Draw(t, "needs")
		made := claims.NewOffer(o)
		var stored any
		if len(needs) > 0 {
			stored = needs
		}
		var takes *bool
		err := s.pg.Work.QueryRow(t.Context(), `SELECT version <= ($2::int[])[array_position($1::text[], kind)] AND (capabilities IS NULL OR capabilities <@ $3::text[])
			FROM (SELECT $4::text AS kind, $5::int AS version, $6::text[] AS capabilities) AS job`, made.Kinds, made.Newest, made.Capabilities, kind, version, stored).Scan(&takes)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := takes != nil && *takes, o.Takes(kind, version, needs); got != want {
			t.Fatalf("the claim takes %s/%d needing %v: %v, the offer %+v: %v", kind, version, needs, got, o, want)
		}
	})
}
