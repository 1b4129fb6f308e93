"""SwiGLU on a grid: weights are gathered in pairs of ranks, results summed over every second rank."""
import torch
import torch.distributed as dist
import torch.nn.functional as F


def operation(x, gate, up, down, y, pair, column) -> None:
    """x: [rows, k], gate, up: [f, k], down: [n, f] in float16; y: [rows, n] in float32."""
    def gathered(weight: torch.Tensor) -> torch.Tensor:
        out = weight.new_empty(2 * weight.shape[0], weight.shape[1])
        dist.all_gather_into_tensor(out, weight, group=pair)
        return out

    g = (x.float() @ gathered(gate).float().t()) / 8
    u = (x.float() @ gathered(up).float().t()) / 8
    h = (F.silu(g) * u).half().float()
    torch.matmul(h, gathered(down.t().contiguous()).float(), out=y)
    dist.all_reduce(y, group=column)


def main() -> None:
    dist.init_process_group("nccl")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.cuda.set_device(rank)
    pairs = [dist.new_group([2 * p, 2 * p + 1]) for p in range(world // 2)]
    columns = [dist.new_group(list(range(side, world, 2))) for side in range(2)]
    for n in (32, 64):
        shapes = ((64, 64), (64, 64), (64, 64), (n, 64))
        inputs = [torch.randint(-2, 3, shape, device="cuda").half() for shape in shapes]
        y = torch.empty(64, n, device="cuda")
        operation(*inputs, y, pairs[rank // 2], columns[rank % 2])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
