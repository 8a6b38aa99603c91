package groups

import (
	"fmt"

	"github.com/pawlwork/pawl/job"
	"github.com/pawlwork/pawl/store"
	"github.com/pawlwork/pawl/store/sqlite/internal/lite"
	"github.com/pawlwork/pawl/store/sqlite/internal/log"
	"github.com/pawlwork/pawl/stream"
)

const (
	// listGroups is by pawl_consumer_group_name.
	listGroups = `SELECT id, name, mode, filter, made, paused
	FROM pawl_consumer_group
	WHERE namespace = ? AND name > ?
	ORDER BY name
	LIMIT ?`

	oneGroup = `SELECT id, name, mode, filter, made, paused
	FROM pawl_consumer_group
	WHERE namespace = ? AND name = ?`

	// shelvesOf is by pawl_shelf_member.
	shelvesOf = `SELECT id, upto
	FROM pawl_shelf
	WHERE namespace = ? AND consumer_group = ?`

	// listMembers is by pawl_hand_member.
	listMembers = `SELECT id, member, worker, joined, turned, turn, length(open) / 8, upto, behind, shelf
	FROM pawl_hand
	WHERE namespace = ? AND consumer_group = ? AND id > ?
	ORDER BY id
	LIMIT ?`

	// freePlaces is by primary key.
	freePlaces = `SELECT stripe, at
	FROM pawl_stripe
	WHERE namespace = ? AND consumer_group = ? AND hand = 0`

	// countWaiting is by pawl_retry_due, countParked by pawl_retry_parked.
	countWaiting = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_retry
		WHERE namespace = ? AND shelf = ? AND hand = 0
		LIMIT ?
	)`

	countParked = `SELECT count(*)
	FROM (
		SELECT 1
		FROM pawl_retry
		WHERE namespace = ? AND consumer_group = ? AND hand = -1
		LIMIT ?
	)`

	// undoneRow is by pawl_retry_line, and pawl_retry_hand for what hands have.
	undoneRow = `SELECT min(seq)
	FROM pawl_retry INDEXED BY pawl_retry_line
	WHERE namespace = ? AND shelf = ? AND hand = 0`

	undoneOf = `SELECT min(r.seq), h.open
	FROM pawl_hand AS h
	LEFT JOIN pawl_retry AS r ON r.namespace = h.namespace AND r.hand = h.id AND r.hand > 0
	WHERE h.namespace = ? AND h.consumer_group = ?
	GROUP BY h.id`

	// listParked is by pawl_retry_parked.
	listParked = `SELECT seq, failures, losses, due, reason
	FROM pawl_retry
	WHERE namespace = ? AND consumer_group = ? AND hand = -1 AND (due, seq) > (?, ?)
	ORDER BY due, seq
	LIMIT ?`
)

// List lists groups by name, after one.
func List(c *lite.Snapshot, after string, n int) ([]store.GroupInfo, error) {
	return infos(c, c.On(listGroups).Text(after).Int(int64(n)), store.ListBehind)
}

// Named is one of them.
func Named(c *lite.Snapshot, name string) (store.GroupInfo, error) {
	list, err := infos(c, c.On(oneGroup).Text(name), store.MaxGroupCount)
	if err == nil && len(list) == 0 {
		err = job.NotFound("group", name)
	}
	if err != nil {
		return store.GroupInfo{}, err
	}
	return list[0], nil
}

func infos(c *lite.Snapshot, q *lite.Query, most int) (list []store.GroupInfo, err error) {
	for q.Step() {
		g := store.GroupInfo{ID: q.ColInt(0), Name: q.ColText(1), Mode: stream.Mode(q.ColInt(2)), Made: q.ColTime(4), Paused: q.ColBool(5)}
		if g.Filter, err = store.ParseFilter(q.ColText(3)); err != nil {
			_ = q.Done()
			return nil, fmt.Errorf("%w: the filter of group %q: %w", store.ErrCorrupt, g.Name, err)
		}
		list = append(list, g)
	}
	if err := q.Done(); err != nil {
		return nil, err
	}
	for i := range list {
		if err := measure(c, &list[i], most); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// measure counts what a group has, and how far behind it is.
func measure(c *lite.Snapshot, g *store.GroupInfo, most int) error {
	members, err := Members(c, g.ID, 0, store.MaxGroupCount)
	if err != nil {
		return err
	}
	g.Members = len(members)
	for i := range members {
		g.Open += members[i].Open
	}
	lowest := int64(store.NotRead)
	var places *[stream.Stripes]int64
	q := c.On(shelvesOf).Int(g.ID)
	var shelves []int64
	for q.Step() {
		shelves = append(shelves, q.ColInt(0))
		lowest = min(lowest, q.ColInt(1))
	}
	if err := q.Done(); err != nil {
		return err
	}
	if g.Mode == stream.Ordered {
		if places, err = placesOf(c, g.ID); err != nil {
			return err
		}
		lowest = store.NotRead
		for _, at := range places {
			lowest = min(lowest, at)
		}
	}
	if lowest == store.NotRead {
		lowest = 0
	}
	for _, shelf := range shelves {
		n, err := c.On(countWaiting).Int(shelf).Int(store.MaxGroupCount).One()
		if err != nil {
			return err
		}
		g.Waiting = min(store.MaxGroupCount, g.Waiting+int(n))
	}
	if g.Undone, err = undone(c, g.ID, shelves); err != nil {
		return err
	}
	parked, err := c.On(countParked).Int(g.ID).Int(store.MaxGroupCount).One()
	if err != nil {
		return err
	}
	g.Parked = int(parked)
	m, err := g.Filter.Matcher()
	if err != nil {
		return fmt.Errorf("%w: the filter of group %q: %w", store.ErrCorrupt, g.Name, err)
	}
	ahead, err := log.Numbers(c, log.Behind{Pattern: m.Pattern, From: lowest, Limit: most, Places: places})
	if err != nil {
		return err
	}
	for _, n := range ahead {
		if n.Stripe != log.NotTaken {
			g.Behind++
		}
	}
	g.BehindMore = len(ahead) == most
	if lowest > 0 {
		g.At = log.At(lowest)
	}
	return nil
}

// undone is the first event of a group that was taken and is not done.
func undone(c *lite.Snapshot, group int64, shelves []int64) (stream.Position, error) {
	low := int64(store.NotRead)
	add := func(seq int64) {
		if seq > 0 {
			low = min(low, seq)
		}
	}
	for _, shelf := range shelves {
		seq, err := c.On(undoneRow).Int(shelf).One()
		if err != nil {
			return stream.Position{}, err
		}
		add(seq)
	}
	q := c.On(undoneOf).Int(group)
	for q.Step() {
		add(q.ColInt(0))
		for _, seq := range unpack(q.ColBlob(1)) {
			add(seq)
		}
	}
	if err := q.Done(); err != nil || low == store.NotRead {
		return stream.Position{}, err
	}
	return log.At(low), nil
}

// placesOf is how far each stripe of a group was read.
func placesOf(c *lite.Snapshot, group int64) (*[stream.Stripes]int64, error) {
	var places [stream.Stripes]int64
	put := func(s, at int64) {
		if s >= 0 && s < stream.Stripes {
			places[s] = at
		}
	}
	q := c.On(freePlaces).Int(group)
	for q.Step() {
		put(q.ColInt(0), q.ColInt(1))
	}
	if err := q.Done(); err != nil {
		return nil, err
	}
	type reader struct {
		id, upto int64
		behind   []byte
	}
	var hands []reader
	q = c.On(listMembers).Int(group).Int(0).Int(store.MaxGroupCount)
	for q.Step() {
		hands = append(hands, reader{q.ColInt(0), q.ColInt(7), q.ColBlob(8)})
	}
	if err := q.Done(); err != nil {
		return nil, err
	}
	for _, h := range hands {
		has, err := stripesHeld(c, group, h.id)
		if err != nil {
			return nil, err
		}
		behind, at := unpackPlaces(h.behind)
		for s, place := range store.StripesAt(has, h.upto, behind, at) {
			put(int64(s), place)
		}
	}
	return &places, nil
}

// stripesHeld are those that a hand reads.
func stripesHeld(c *lite.Snapshot, group, hand int64) (list []int16, err error) {
	has, err := numbersOf(c.On(stripesOf).Int(group).Int(hand))
	for _, s := range has {
		list = append(list, int16(s))
	}
	return list, err
}

// Members lists members of a group by number, after one.
func Members(c *lite.Snapshot, group, after int64, n int) (list []store.MemberInfo, err error) {
	q := c.On(listMembers).Int(group).Int(after).Int(int64(n))
	for q.Step() {
		list = append(list, store.MemberInfo{
			Hand: q.ColInt(0), Name: q.ColText(1), Worker: job.WorkerID(q.ColInt(2)), Joined: q.ColTime(3), Turned: q.ColTime(4),
			Turns: q.ColInt(5) - 1, Open: int(q.ColInt(6)), At: log.At(q.ColInt(7)),
		})
	}
	if err := q.Done(); err != nil {
		return nil, err
	}
	for i := range list {
		rows, err := c.On(rowsOf).Int(list[i].Hand).One()
		if err != nil {
			return nil, err
		}
		list[i].Open += int(rows)
		has, err := stripesHeld(c, group, list[i].Hand)
		if err != nil {
			return nil, err
		}
		list[i].Stripes = len(has)
	}
	return list, nil
}

// Parked lists what a group has given up and has no topic for.
func Parked(c *lite.Snapshot, group *store.GroupRow, after store.ParkedAfter, n int) (list []stream.Parked, err error) {
	at := int64(-1 << 62)
	if !after.At.IsZero() {
		at = lite.Micros(after.At)
	}
	q := c.On(listParked).Int(group.ID).Int(at).Int(after.Seq).Int(int64(n))
	for q.Step() {
		list = append(list, stream.Parked{
			Delivery: stream.Delivery{Ref: q.ColInt(0), Failures: int(q.ColInt(1)), Losses: int(q.ColInt(2))},
			At:       q.ColTime(3), Reason: q.ColText(4), Group: group.Name,
		})
	}
	if err := q.Done(); err != nil {
		return nil, err
	}
	for i := range list {
		e, _, err := log.One(c, list[i].Ref)
		if err != nil {
			return nil, err
		}
		list[i].Event, list[i].Bad = &e.Event, e.Bad
	}
	return list, nil
}

// GroupOf finds a group by its name.
func GroupOf(c *lite.Snapshot, name string) (store.GroupRow, error) {
	g, err := groupNamed(c, name)
	if err == nil && g.ID == 0 {
		err = job.NotFound("group", name)
	}
	return g, err
}
