#include "headrace/webnn.h"

namespace headrace::webnn {

std::vector<MLOperand> MLGraphBuilder::gru(const MLOperand& input, const MLOperand& weight,
                                           const MLOperand& recurrentWeight, std::int64_t steps,
                                           std::int64_t hiddenSize, const MLRecurrentOperands& operands,
                                           const MLOptions& options, const std::string& label) {
    const std::vector<MLOperand> list{
        input, weight, recurrentWeight, operands.bias, operands.recurrentBias, operands.initialHiddenState};
    MLOptions all = options;
    all.emplace_back("steps", steps);
    all.emplace_back("hidden_size", hiddenSize);
    return op("gru", list, all, label);
}

MLOperand MLGraphBuilder::gruCell(const MLOperand& input, const MLOperand& weight,
                                  const MLOperand& recurrentWeight, const MLOperand& hiddenState,
                                  std::int64_t hiddenSize, const MLRecurrentOperands& operands,
                                  const MLOptions& options, const std::string& label) {
    MLOptions all = options;
    all.emplace_back("hidden_size", hiddenSize);
    return op1("gru_cell",
               {input, weight, recurrentWeight, hiddenState, operands.bias, operands.recurrentBias}, all,
               label);
}

std::vector<MLOperand> MLGraphBuilder::lstm(const MLOperand& input, const MLOperand& weight,
                                            const MLOperand& recurrentWeight, std::int64_t steps,
                                            std::int64_t hiddenSize, const MLRecurrentOperands& operands,
                                            const MLOptions& options, const std::string& label) {
    const std::vector<MLOperand> list{input,
                                      weight,
                                      recurrentWeight,
                                      operands.bias,
                                      operands.recurrentBias,
                                      operands.peepholeWeight,
                                      operands.initialHiddenState,
                                      operands.initialCellState};
    MLOptions all = options;
    all.emplace_back("steps", steps);
    all.emplace_back("hidden_size", hiddenSize);
    return op("lstm", list, all, label);
}

std::vector<MLOperand> MLGraphBuilder::lstmCell(const MLOperand& input, const MLOperand& weight,
                                                const MLOperand& recurrentWeight,
                                                const MLOperand& hiddenState, const MLOperand& cellState,
                                                std::int64_t hiddenSize, const MLRecurrentOperands& operands,
                                                const MLOptions& options, const std::string& label) {
    const std::vector<MLOperand> list{
        input,     weight,        recurrentWeight,        hiddenState,
        cellState, operands.bias, operands.recurrentBias, operands.peepholeWeight};
    MLOptions all = options;
    all.emplace_back("hidden_size", hiddenSize);
    return op("lstm_cell", list, all, label);
}

}  // namespace headrace::webnn
