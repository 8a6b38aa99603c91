package postgres

import "github.com/pawlwork/pawl/store/postgres/internal/pg"

// settingRoom is what operators have set: pauses of queues, and who did what.
type settingRoom struct {
	pg    *pg.DB
	hints *hintRoom
}

func newSettingRoom(db *pg.DB, hints *hintRoom) *settingRoom {
	return &settingRoom{pg: db, hints: hints}
}
