package groups

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// Plans are the statements of this room that find rows, with the indexes that must
// serve them.
var Plans = []pg.Plan{
	{Name: "turnAll", Text: turnAll, Indexes: []string{
		"hand_at_pkey", "shelf_at_pkey", "retry_due", "retry_suspect", "event_pkey", "topic_id",
	}},
	{Name: "turnTopic", Text: turnTopic, Indexes: []string{
		"hand_at_pkey", "shelf_at_pkey", "retry_due", "retry_suspect", "event_topic", "topic_id",
	}},
	{Name: "turnTopics", Text: turnTopics, Indexes: []string{
		"hand_at_pkey", "shelf_at_pkey", "retry_due", "retry_suspect", "event_topic", "topic_id",
	}},
	{Name: "turnAhead", Text: turnAhead, Indexes: []string{
		"hand_at_pkey", "shelf_at_pkey", "retry_due", "retry_suspect", "topic_id",
	}},
	{Name: "aheadAll", Text: aheadAll, Indexes: []string{"event_pkey"}},
	{Name: "aheadTopic", Text: aheadTopic, Indexes: []string{"event_topic"}},
	{Name: "aheadTopics", Text: aheadTopics, Indexes: []string{"event_topic"}},
	{Name: "givenEvents", Text: givenEvents, Indexes: []string{"hand_at_pkey", "event_pkey"}},
	{Name: "givenAll", Text: givenAll, Indexes: []string{"hand_at_pkey", "event_pkey"}},
	{Name: "givenTopic", Text: givenTopic, Indexes: []string{"hand_at_pkey", "event_topic"}},
	{Name: "forgetRows", Text: forgetRows, Indexes: []string{"retry_pkey"}},
	{Name: "putRows", Text: putRows, Indexes: []string{"hand_at_pkey"}},
	{Name: "takeAcked", Text: takeAcked, Indexes: []string{"acked_pkey"}},
	{Name: "lockTurn", Text: lockTurn, Indexes: []string{"hand_at_pkey"}},
	{Name: "removeRows", Text: removeRows, Indexes: []string{"retry_pkey"}},
	{Name: "whereTurn", Text: whereTurn, Indexes: []string{"hand_at_pkey"}},
	{Name: "heldRows", Text: heldRows, Indexes: []string{"retry_hand", "event_pkey"}},
	{Name: "lookOrdered", Text: lookOrdered, Indexes: []string{"hand_at_pkey", "topic_id"}},
	{Name: "waitingRows", Text: waitingRows, Indexes: []string{"retry_line"}},
	{Name: "laterRow", Text: laterRow, Indexes: []string{"retry_due"}},
	{Name: "orderedAll", Text: orderedAll, Indexes: []string{"event_pkey"}},
	{Name: "orderedTopics", Text: orderedTopics, Indexes: []string{"event_topic"}},
	{Name: "givenRows", Text: givenRows, Indexes: []string{"event_pkey"}},
	{Name: "putOrdered", Text: putOrdered, Indexes: []string{"hand_at_pkey", "retry_pkey"}},
	{Name: "freeStripes", Text: freeStripes, Indexes: []string{"stripe_pkey"}},
	{Name: "takeStripes", Text: takeStripes, Indexes: []string{"stripe_pkey"}},
	{Name: "findMember", Text: findMember, Indexes: []string{"hand_member"}},
	{Name: "removeTurn", Text: removeTurn, Indexes: []string{"hand_at_pkey"}},
	{Name: "countRows", Text: countRows, Indexes: []string{"retry_hand"}},
	{Name: "giveBackFresh", Text: giveBackFresh, Indexes: []string{"event_pkey"}},
	{Name: "giveBackRows", Text: giveBackRows, Indexes: []string{"retry_hand"}},
	{Name: "unwant", Text: unwant, Indexes: []string{"retry_suspect"}},
	{Name: "newsOf", Text: newsOf, Indexes: []string{"hand_pkey", "retry_due"}},
	{Name: "addAcked", Text: addAcked, Indexes: []string{"hand_pkey"}},
	{Name: "shelvesOf", Text: shelvesOf, Indexes: []string{"shelf_member", "shelf_at_pkey", "retry_due"}},
	{Name: "undoneRow", Text: undoneRow, Indexes: []string{"shelf_member", "retry_line", "hand_member", "hand_at_pkey", "retry_hand"}},
	{Name: "countParked", Text: countParked, Indexes: []string{"retry_parked"}},
	{Name: "listMembers", Text: listMembers, Indexes: []string{"hand_member", "hand_at_pkey", "retry_hand", "stripe_pkey"}},
	{Name: "countAll", Text: countAll, Indexes: []string{"event_pkey"}},
	{Name: "countTopics", Text: countTopics, Indexes: []string{"event_topic"}},
	{Name: "listParked", Text: listParked, Indexes: []string{"retry_parked", "event_pkey"}},
	{Name: "replayParked", Text: replayParked, Indexes: []string{"retry_parked"}},
	{Name: "replayLetters", Text: replayLetters, Indexes: []string{"event_pkey", "shelf_member"}},
	{Name: "removeWaiting", Text: removeWaiting, Indexes: []string{"retry_pkey"}},
}
