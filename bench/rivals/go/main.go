// Command go_channel moves 64-bit values through a buffered channel of Go, as suite_queue.c does through the other contenders.
//
//	go_channel PRODUCERS CONSUMERS CAPACITY DURATION_MS
//
// It prints the count and sum of what went in, the count and sum of what came out, and the nanoseconds until the producers were stopped.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil || value < 1 {
		fmt.Fprintln(os.Stderr, "usage: go_channel PRODUCERS CONSUMERS CAPACITY DURATION_MS")
		os.Exit(2)
	}
	return value
}

func main() {
	if len(os.Args) != 5 {
		number("")
	}
	producers, consumers := number(os.Args[1]), number(os.Args[2])
	channel := make(chan uint64, number(os.Args[3]))
	duration := time.Duration(number(os.Args[4])) * time.Millisecond

	var stop int32
	var put, putSum, got, gotSum uint64
	var putting, getting sync.WaitGroup
	begin := make(chan struct{})

	putting.Add(producers)
	for i := 0; i < producers; i++ {
		go func() {
			var count, sum uint64
			<-begin
			for atomic.LoadInt32(&stop) == 0 {
				count++
				channel <- count
				sum += count
			}
			atomic.AddUint64(&put, count)
			atomic.AddUint64(&putSum, sum)
			putting.Done()
		}()
	}
	getting.Add(consumers)
	for i := 0; i < consumers; i++ {
		go func() {
			var count, sum uint64
			<-begin
			for value := range channel {
				sum += value
				count++
			}
			atomic.AddUint64(&got, count)
			atomic.AddUint64(&gotSum, sum)
			getting.Done()
		}()
	}
	start := time.Now()
	close(begin)
	time.Sleep(duration)
	atomic.StoreInt32(&stop, 1)
	elapsed := time.Since(start)
	putting.Wait()
	close(channel)
	getting.Wait()
	fmt.Println(put, putSum, got, gotSum, elapsed.Nanoseconds())
}
