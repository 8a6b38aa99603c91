package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// watermillPublish is how many messages one Publish hands in to fill a topic.
	watermillPublish = 1000
	// watermillConnections are those of publishers: more than callers on two processors only get in each other's way.
	watermillConnections = 16
)

// watermillStream is Watermill SQL on pgx, which it is faster on than on database/sql, with its default schema and
// offsets, payloads as bytes, and a poll of 1 ms.
type watermillStream struct {
	pool      *pgxpool.Pool
	publisher *sql.Publisher
	schema    sql.DefaultPostgreSQLSchema
}

// openWatermill has a subscriber ask for 100 messages at once, as it does by default.
func openWatermill(ctx context.Context, at place) (queue, error) {
	return openWatermillBy(ctx, at, 100)
}

// openWatermillByThousand has it ask for more: each query sorts all that is left of the topic.
func openWatermillByThousand(ctx context.Context, at place) (queue, error) {
	return openWatermillBy(ctx, at, 1000)
}

func openWatermillBy(ctx context.Context, at place, batch int) (queue, error) {
	schema := sql.DefaultPostgreSQLSchema{GeneratePayloadType: func(string) string { return "BYTEA" }, SubscribeBatchSize: batch}
	pool, err := openPool(ctx, at, watermillConnections)
	if err != nil {
		return nil, err
	}
	db := sql.BeginnerFromPgx(pool)
	publisher, err := sql.NewPublisher(db, sql.PublisherConfig{SchemaAdapter: schema, AutoInitializeSchema: true}, nil)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &watermillStream{pool, publisher, schema}, nil
}

func watermillMessage(p payload) (*message.Message, error) {
	data, err := json.Marshal(p)
	return message.NewMessage(watermill.NewUUID(), data), err
}

func (s *watermillStream) Enqueue(_ context.Context, p payload) error {
	m, err := watermillMessage(p)
	if err != nil {
		return err
	}
	return s.publisher.Publish(streamTopic, m)
}

func (s *watermillStream) Fill(_ context.Context, ps []payload) error {
	for len(ps) > 0 {
		list := make([]*message.Message, min(len(ps), watermillPublish))
		for i := range list {
			var err error
			if list[i], err = watermillMessage(ps[i]); err != nil {
				return err
			}
		}
		if err := s.publisher.Publish(streamTopic, list...); err != nil {
			return err
		}
		ps = ps[len(list):]
	}
	return nil
}

// Work subscribes once: a second subscriber of the group waits for the first, whose transaction holds the offset.
func (s *watermillStream) Work(ctx context.Context, _ int, handle func(payload)) (func() error, error) {
	subscriber, err := sql.NewSubscriber(sql.BeginnerFromPgx(s.pool), sql.SubscriberConfig{
		ConsumerGroup:    streamGroup,
		SchemaAdapter:    s.schema,
		OffsetsAdapter:   sql.DefaultPostgreSQLOffsetsAdapter{},
		PollInterval:     time.Millisecond,
		InitializeSchema: true,
	}, nil)
	if err != nil {
		return nil, err
	}
	messages, err := subscriber.Subscribe(ctx, streamTopic)
	if err != nil {
		return nil, errors.Join(err, subscriber.Close())
	}
	ended := make(chan error, 1)
	go func() {
		var failed error
		for m := range messages {
			var p payload
			if err := json.Unmarshal(m.Payload, &p); err != nil {
				failed = errors.Join(failed, err)
			}
			handle(p)
			m.Ack()
		}
		ended <- failed
	}()
	return func() error { return errors.Join(subscriber.Close(), <-ended) }, nil
}

// Left counts messages behind the offset that is stored.
func (s *watermillStream) Left(ctx context.Context) (left int, err error) {
	const count = `select count(*) from watermill_bench`
	var subscribed bool
	if err := s.pool.QueryRow(ctx, `select to_regclass('watermill_offsets_bench') is not null`).Scan(&subscribed); err != nil {
		return 0, err
	}
	if !subscribed {
		return left, s.pool.QueryRow(ctx, count).Scan(&left)
	}
	err = s.pool.QueryRow(ctx, count+` where (transaction_id, "offset") >
		(select last_processed_transaction_id, offset_acked from watermill_offsets_bench where consumer_group = $1)`, streamGroup).Scan(&left)
	return left, err
}

func (s *watermillStream) Close() error {
	err := s.publisher.Close()
	s.pool.Close()
	return err
}
