#pragma once
#include <cstddef>
#include <list>
#include <map>
#include <utility>

namespace headrace {

/// A cache whose least recently used entries go when the rest exceed a number of bytes. The newest entry
/// always stays, whatever its size.
template <class Key, class T>
class ByteLru {
public:
    explicit ByteLru(std::size_t limit) : limit_(limit) {}

    /// The entry, which becomes the newest; null when there is none.
    T* find(const Key& key) {
        if (!entries_.empty() && entries_.front().key->first == key) return &entries_.front().value;
        const auto it = index_.find(key);
        if (it == index_.end()) return nullptr;
        entries_.splice(entries_.begin(), entries_, it->second);
        return &entries_.front().value;
    }

    /// The key must be new.
    T& insert(Key key, T value, std::size_t bytes) {
        const auto it = index_.emplace(std::move(key), entries_.end()).first;
        entries_.push_front({it, std::move(value), bytes});
        it->second = entries_.begin();
        bytes_ += bytes;
        while (bytes_ > limit_ && entries_.size() > 1) {
            bytes_ -= entries_.back().bytes;
            index_.erase(entries_.back().key);
            entries_.pop_back();
        }
        return entries_.front().value;
    }

    /// The newest entry, which is there no more. There must be one.
    std::pair<Key, T> take_newest() {
        Entry entry = std::move(entries_.front());
        entries_.pop_front();
        bytes_ -= entry.bytes;
        return {index_.extract(entry.key).key(), std::move(entry.value)};
    }

    void clear() {
        entries_.clear();
        index_.clear();
        bytes_ = 0;
    }

    T* newest() { return entries_.empty() ? nullptr : &entries_.front().value; }
    std::size_t size() const { return entries_.size(); }
    std::size_t bytes() const { return bytes_; }

private:
    struct Entry;
    using Index = std::map<Key, typename std::list<Entry>::iterator>;
    struct Entry {
        typename Index::iterator key;
        T value;
        std::size_t bytes;
    };

    std::size_t limit_, bytes_ = 0;
    std::list<Entry> entries_;  ///< the newest first
    Index index_;
};

}  // namespace headrace
