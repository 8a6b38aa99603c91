package pg

import (
	"context"
	"encoding/binary"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// The binary form of COPY: a signature, flags and an empty extension; then each
// row with its number of columns, each column with its length; then -1.
const CopySignature = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// CopyFrom sends what is read to a COPY. Nothing is committed yet, so an error is
// never an unknown outcome.
func (t *Transaction) CopyFrom(ctx context.Context, r io.Reader, text string) error {
	if _, err := t.conn.Conn().PgConn().CopyFrom(ctx, r, t.s.SQL(text)); err != nil {
		f := Sent(err)
		f.Unknown = false
		return f.AsError()
	}
	return nil
}

func AppendInt2(b []byte, n int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(n)) }
func appendInt4(b []byte, n int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(n)) }
func appendInt8(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }

func copyNull(b []byte) []byte             { return appendInt4(b, -1) }
func CopyInt2(b []byte, n int16) []byte    { return AppendInt2(appendInt4(b, 2), n) }
func CopyInt4(b []byte, n int32) []byte    { return appendInt4(appendInt4(b, 4), n) }
func copyInt8(b []byte, n int64) []byte    { return appendInt8(appendInt4(b, 8), n) }
func CopyText(b []byte, s string) []byte   { return append(appendInt4(b, int32(len(s))), s...) }
func CopyUUID(b []byte, u [16]byte) []byte { return append(appendInt4(b, 16), u[:]...) }

func CopyBytes(b, v []byte) []byte {
	if v == nil {
		return copyNull(b)
	}
	return append(appendInt4(b, int32(len(v))), v...)
}

func CopyTime(b []byte, t time.Time) []byte {
	return copyInt8(b, t.Unix()*1_000_000+int64(t.Nanosecond())/1000-postgresEpoch)
}

func CopyNullTime(b []byte, t pgtype.Timestamptz) []byte {
	if !t.Valid {
		return copyNull(b)
	}
	return CopyTime(b, t.Time)
}

func CopyNullInt8(b []byte, n pgtype.Int8) []byte {
	if !n.Valid {
		return copyNull(b)
	}
	return copyInt8(b, n.Int64)
}

func CopyNullText(b []byte, t pgtype.Text) []byte {
	if !t.Valid {
		return copyNull(b)
	}
	return CopyText(b, t.String)
}

// CopyList writes a text[]: dimensions, no NULLs, the type of elements, their
// count, the lower bound, and each with its length.
func CopyList(b []byte, list []string) []byte {
	if len(list) == 0 {
		return copyNull(b)
	}
	size := 20
	for _, s := range list {
		size += 4 + len(s)
	}
	b = appendInt4(b, int32(size))
	b = appendInt4(b, 1)
	b = appendInt4(b, 0)
	b = appendInt4(b, pgtype.TextOID)
	b = appendInt4(b, int32(len(list)))
	b = appendInt4(b, 1)
	for _, s := range list {
		b = CopyText(b, s)
	}
	return b
}
