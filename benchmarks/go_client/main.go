// Commits upserts, or reads rows by their keys, from some goroutines with Google's Go client,
// unmodified, and prints what it took: a line of JSON with the number of calls, the median and the
// 99th percentile in milliseconds. Or it reads the table once: the number of rows, and the time.
// The server is that of SPANNER_EMULATOR_HOST; the table is that of benchmarks/singers.py.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"sort"
	"sync"
	"time"

	"cloud.google.com/go/spanner"
)

var columns = []string{"SingerId", "FirstName", "LastName", "BirthDate", "LastModified"}

type figures struct {
	Calls int     `json:"calls"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
}

func main() {
	database := flag.String("database", "", "projects/P/instances/I/databases/D")
	threads := flag.Int("threads", 8, "goroutines")
	upserts := flag.Int("upserts", 5, "rows a commit")
	seconds := flag.Float64("seconds", 5, "how long")
	what := flag.String("what", "commit", "commit, read, or scan")
	rows := flag.Int("rows", 0, "rows of the table that is read")
	flag.Parse()
	ctx := context.Background()
	config := spanner.ClientConfig{DisableNativeMetrics: true}
	client, err := spanner.NewClientWithConfig(ctx, *database, config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	calls := map[string]func(int) error{
		"commit": func(turn int) error {
			_, err := client.Apply(ctx, upsert(turn**upserts, *upserts), spanner.ApplyAtLeastOnce())
			return err
		},
		"read": func(turn int) error {
			_, err := client.Single().ReadRow(ctx, "Singers", spanner.Key{turn % *rows}, columns)
			return err
		},
		"scan": func(int) error { return scan(ctx, client, *rows) },
	}
	call := calls[*what]
	end := time.Now().Add(time.Duration(*seconds * float64(time.Second)))
	taken := make([][]time.Duration, *threads)
	var running sync.WaitGroup
	for number := range *threads {
		running.Add(1)
		go func() {
			defer running.Done()
			for turn := number; time.Now().Before(end); turn += *threads {
				began := time.Now()
				if err := call(turn); err != nil {
					log.Fatal(err)
				}
				taken[number] = append(taken[number], time.Since(began))
			}
		}()
	}
	running.Wait()
	if err := json.NewEncoder(os.Stdout).Encode(summarize(taken)); err != nil {
		log.Fatal(err)
	}
}

func scan(ctx context.Context, client *spanner.Client, rows int) error {
	found := 0
	statement := spanner.Statement{SQL: "SELECT * FROM Singers"}
	err := client.Single().Query(ctx, statement).Do(func(*spanner.Row) error {
		found++
		return nil
	})
	if err == nil && found != rows {
		return fmt.Errorf("%d rows, not %d", found, rows)
	}
	return err
}

func upsert(first, count int) []*spanner.Mutation {
	mutations := make([]*spanner.Mutation, count)
	for n := range count {
		values := []any{
			first + n, fmt.Sprintf("First%d", n), fmt.Sprintf("Last%d", first+n), "1990-01-01",
			spanner.CommitTimestamp,
		}
		mutations[n] = spanner.InsertOrUpdate("Singers", columns, values)
	}
	return mutations
}

func summarize(taken [][]time.Duration) figures {
	var all []time.Duration
	for _, each := range taken {
		all = append(all, each...)
	}
	if len(all) == 0 {
		return figures{}
	}
	sort.Slice(all, func(a, b int) bool { return all[a] < all[b] })
	at := func(part float64) float64 {
		return float64(all[int(part*float64(len(all)-1))].Microseconds()) / 1000
	}
	return figures{len(all), at(0.5), at(0.99)}
}
