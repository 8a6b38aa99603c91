package job

// Turn is one gate's part of a deal.
type Turn struct {
	Weight int // how many jobs it gets when it is its turn
	Room   int // how many it may get at all
	Credit int // how many it may get before the turns, because it had none for a while
}

// DealAhead gives up to three quarters of n places to gates that have credit, one each round and
// round, and takes them off what they may still get. So who comes seldom is soon over,
// and who is always there keeps a part of what there is. It returns how many each gets,
// and how many places are left for the turns.
func DealAhead(turns []Turn, n int) (given []int, left int) {
	given, left = make([]int, len(turns)), n
	for some := true; some; {
		some = false
		for i := range turns {
			if t := &turns[i]; left > n-n*3/4 && t.Credit > 0 && t.Room > 0 {
				t.Credit, t.Room = t.Credit-1, t.Room-1
				given[i]++
				left--
				some = true
			}
		}
	}
	return given, left
}

// Deal gives n places to gates in turn: each gets as many as its weight, then the next
// has its turn, round and round, until all are given or nobody has room. The first
// has some of its turn left from before. It returns how many each gets, whose turn
// comes next, and how much of that turn is left.
//
// So while two have jobs, they run in the ratio of their weights, and nobody waits
// longer than for one turn of each of the others.
func Deal(turns []Turn, left, n int) (given []int, next, rest int) {
	given = make([]int, len(turns))
	if len(turns) == 0 {
		return given, 0, 0
	}
	idle := 0 // gates in a row that got nothing
	if left <= 0 || left > turns[0].Weight {
		left = turns[0].Weight
	}
	at := 0
	for n > 0 && idle < len(turns) {
		t := &turns[at]
		k := min(left, t.Room-given[at], n)
		if k > 0 {
			given[at] += k
			n -= k
			left -= k
			idle = 0
		} else {
			idle++
		}
		if left > 0 && given[at] < t.Room && n == 0 {
			return given, at, left
		}
		at = (at + 1) % len(turns)
		left = turns[at].Weight
	}
	return given, at, left
}
