// Sorts random numbers, and writes the milliseconds that the median of nine rounds took.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

int main(int count, char** words) {
    if (count != 4) {
        std::cerr << "usage: sort intro|merge|heap SEED RESULT" << std::endl;
        return 2;
    }
    const std::string algorithm = words[1];
    std::mt19937_64 draw(std::stoull(words[2]));
    std::vector<std::uint64_t> numbers(1'000'000);
    std::generate(numbers.begin(), numbers.end(), draw);
    std::vector<double> took;
    for (int round = 0; round < 9; ++round) {
        auto copy = numbers;
        const auto began = std::chrono::steady_clock::now();
        if (algorithm == "intro") {
            std::sort(copy.begin(), copy.end());
        } else if (algorithm == "merge") {
            std::stable_sort(copy.begin(), copy.end());
        } else if (algorithm == "heap") {
            std::make_heap(copy.begin(), copy.end());
            std::sort_heap(copy.begin(), copy.end());
        } else {
            std::cerr << algorithm << ": no such algorithm; allowed: intro, merge, heap" << std::endl;
            return 2;
        }
        const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - began;
        took.push_back(spent.count());
    }
    std::nth_element(took.begin(), took.begin() + 4, took.end());
    std::ofstream(words[3]) << "{\"scores\": {\"milliseconds\": " << took[4] << "}}" << std::endl;
}
